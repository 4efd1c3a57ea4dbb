# A sum that is rescaled by a running maximum belongs to a group.
graph(X: M,K[M,K], W: N,K[N,K]) {
  S = map M (x in !X, w = !W) {
    s = map N (x_1 = !x, w_1 in !w) {
      t, p = map K (a in !x_1, b in !w_1) {
        r = row_max(a)
        e = a - r over [M,K]
        f = exp(e)
        d = dot(f, b)
        yield max t_1 = r
        yield +d by t_1: x * exp(sub0(r, r2))
      }
      yield p
    }
    yield s
  }
  T = transpose N,M[N,M] (!S)
  return T
}
# because: K<row_max x - y exp(x) dot> starts from or is rescaled by other results
