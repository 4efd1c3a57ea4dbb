# A result that the map does not make would be lost, or computed in every iteration.
graph(X: N[M,N] = port, VT: L,N[L,N]) {
  l, E = map N (x in !X) {
    e = square(x)
    t = row_sum(e)
    yield +t
    yield e
  }
  O = map L (e_1 = !E, v in !VT) {
    z = map N (a in !e_1, b in !v) {
      d = dot(a, b)
      yield +d
    }
    yield z
  }
  return O, l
}
# because: l is a result that the map does not make
