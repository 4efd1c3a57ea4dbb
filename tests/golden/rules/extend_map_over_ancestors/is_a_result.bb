# The list is a result.
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
  return O, E
}
# because: E is a result of the program
