# What would be pulled in reads lists over the map's own dim.
graph(X: L[M,L] = port, W: N,L[N,L], VT: L,N[L,N]) {
  E = map N (x = !X, w in !W) {
    e = map L (a in !x, b in !w) {
      d = dot(a, b)
      yield +d
    }
    yield e
  }
  O = map L (E2 = !E, v in !VT) {
    o = map N (e_1 in !E2, w_1 in !v) {
      d_1 = dot(e_1, w_1)
      yield +d_1
    }
    yield o
  }
  return O
}
# because: N<L<dot>> runs over L itself
