# The map also accumulates a sum, and a later map reads it: not every result comes from either.
graph(X: N[M,N] = port, VT: L,N[L,N]) {
  E = map N (x in !X) {
    e = square(x)
    yield e
  }
  O, S = map L (e_1 = !E, v in !VT) {
    z = map N (a in !e_1, b in !v) {
      d = dot(a, b)
      yield +d
    }
    t = row_sum(z)
    yield z
    yield +t
  }
  Y = map L (o in !O, s = S) {
    y = row_scale(o, s)
    yield y
  }
  return Y
}
# because: Y is a result that the map does not make
