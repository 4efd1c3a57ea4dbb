# Unlike for rule 6, others may need what the map needs, and its results.
graph(X: N[M,N] = port, VT: L,N[L,N]) {
  E = map N (x in !X) {
    e = square(x)
    yield e
  }
  O = map L (E2 = !E, v in !VT) {
    o = map N (e_1 in !E2, w in !v) {
      d = dot(e_1, w)
      yield +d
    }
    yield o
  }
  Z = map L (o_1 in !O) {
    z = exp(o_1)
    yield z
  }
  return O, E, Z
}
# after
graph(X: N[M,N] = port, VT: L,N[L,N]) {
  E = map N (x in !X) {
    e = square(x)
    yield e
  }
  v = head L (!VT)
  o = map N (e_1 in !E, w in !v) {
    d = dot(e_1, w)
    yield +d
  }
  O = map L from 1 (E2 = !E, v_1 in !VT; o) {
    o_1 = map N (e_2 in !E2, w_1 in !v_1) {
      d_1 = dot(e_2, w_1)
      yield +d_1
    }
    yield o_1
  }
  Z = map L (o_2 in !O) {
    z = exp(o_2)
    yield z
  }
  return O, E, Z
}
