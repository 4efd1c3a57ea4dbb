# Iteration 0 of the map stands outside it.
graph(X: N[M,N] = port, VT: L,N[L,N]) {
  E = map N (x in !X) {
    e = square(x)
    yield e
  }
  v0 = head L (!VT)
  o0 = map N (e_1 in !E, w in !v0) {
    d = dot(e_1, w)
    yield +d
  }
  O = map L from 1 (E2 = !E, v in !VT; o0) {
    o = map N (e_2 in !E2, w_1 in !v) {
      d_1 = dot(e_2, w_1)
      yield +d_1
    }
    yield o
  }
  return O
}
# because: the first iteration of O was peeled off
