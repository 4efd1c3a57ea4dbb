# The list leaves the program in its old order.
graph(X: M,K[M,K], W: N,K[N,K]) {
  S = map M (x in !X, w = !W) {
    s = map N (x_1 = !x, w_1 in !w) {
      p = map K (a in !x_1, b in !w_1) {
        d = dot(a, b)
        yield +d
      }
      yield p
    }
    yield s
  }
  T = transpose N,M[N,M] (!S)
  return T, S
}
# because: S is a result of the program: it must still be computed
