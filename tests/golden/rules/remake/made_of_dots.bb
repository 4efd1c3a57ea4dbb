# Each item is a product: it is made once.
graph(X: N[N,K], Z: [L,K], W: M[M]) {
  P = map N (x in !X, z = Z) {
    p = dot(x, z)
    yield p
  }
  Y = map M (P_1 = !P, w in !W) {
    y = map N (p_1 in !P_1) {
      s = row_sum(p_1)
      yield s
    }
    z_1 = map N (v = w, t in !y) {
      o = outer(v, t)
      yield o
    }
    yield z_1
  }
  return Y
}
