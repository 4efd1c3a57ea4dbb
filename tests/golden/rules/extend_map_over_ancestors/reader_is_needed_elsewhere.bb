# What stands between is needed elsewhere.
graph(X: N[M,N] = port, VT: L,N[L,N]) {
  E, s = map N (x in !X) {
    e = exp(x)
    t = row_sum(e)
    yield e
    yield +t
  }
  r = 1 / s
  O = map L (E2 = !E, v in !VT, r2 = r) {
    o = map N (e_1 in !E2, w in !v) {
      d = dot(e_1, w)
      yield +d
    }
    z = row_scale(o, r2)
    yield z
  }
  return O, r
}
# because: r is a result of the program
