# (b) The statistic of a norm meets the first pass over the same row.
graph(X: N[M,N] = port, VT: L,N[L,N]) {
  s = map N (x in !X) {
    q = square(x)
    t = row_sum(q)
    yield +t
  }
  r = rsqrt(s)
  O = map L (E2 = !X, v in !VT, r2 = r) {
    o = map N (e in !E2, w in !v) {
      d = dot(e, w)
      yield +d
    }
    z = row_scale(o, r2)
    yield z
  }
  return O
}
# after
graph(X: N[M,N] = port, VT: L,N[L,N]) {
  s = map N (x in !X) {
    q = square(x)
    t = row_sum(q)
    yield +t
  }
  r = rsqrt(s)
  v = head L (!VT)
  o = map N (e in !X, w in !v) {
    d = dot(e, w)
    yield +d
  }
  z = row_scale(o, r)
  O = map L from 1 (E2 = !X, v_1 in !VT, r2 = r; z) {
    o_1 = map N (e_1 in !E2, w_1 in !v_1) {
      d_1 = dot(e_1, w_1)
      yield +d_1
    }
    z_1 = row_scale(o_1, r2)
    yield z_1
  }
  return O
}
