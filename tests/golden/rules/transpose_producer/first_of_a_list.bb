# The first item of a list is a block that was made elsewhere.
graph(X: M,N,K[M,N], c: N[N]) {
  S = map M (x in !X, d = !c) {
    s = map N (x_1 in !x, d_1 in !d) {
      h = head K (!x_1)
      y = col_scale(h, d_1)
      yield y
    }
    yield s
  }
  T = transpose N,M[N,M] (!S)
  return T
}
# because: head has no transposed form
