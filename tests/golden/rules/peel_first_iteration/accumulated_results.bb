# Partial results of the first iteration start the fold.
graph(X: N[M,N] = port, VT: L,N[L,N], Y: L[K,L] = port) {
  E = map N (x in !X) {
    e = square(x)
    yield e
  }
  z, O = map L (E2 = !E, v in !VT, y in !Y) {
    o = map N (e_1 in !E2, w in !v) {
      d = dot(e_1, w)
      yield +d
    }
    p = dot(o, y)
    yield +p
    yield o
  }
  return z, O
}
# after
graph(X: N[M,N] = port, VT: L,N[L,N], Y: L[K,L] = port) {
  E = map N (x in !X) {
    e = square(x)
    yield e
  }
  v = head L (!VT)
  o = map N (e_1 in !E, w in !v) {
    d = dot(e_1, w)
    yield +d
  }
  y = head L (!Y)
  p = dot(o, y)
  z, O = map L from 1 (E2 = !E, v_1 in !VT, y_1 in !Y; p, o) {
    o_1 = map N (e_2 in !E2, w_1 in !v_1) {
      d_1 = dot(e_2, w_1)
      yield +d_1
    }
    p_1 = dot(o_1, y_1)
    yield +p_1
    yield o_1
  }
  return z, O
}
