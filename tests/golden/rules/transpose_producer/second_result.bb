# A map inside gives a vector, which stays, and then a block, which turns.
graph(X: M,K[M,K], W: N,K[N,K]) {
  S = map M (x in !X, w = !W) {
    s = map N (x_1 = !x, w_1 in !w) {
      t, p = map K (a in !x_1, b in !w_1) {
        r = row_sum(a)
        d = dot(a, b)
        yield +r
        yield +d
      }
      e = exp(p)
      y = row_scale(e, t)
      yield y
    }
    yield s
  }
  T = transpose N,M[N,M] (!S)
  return T
}
# after
graph(X: M,K[M,K], W: N,K[N,K]) {
  S = map N (w in !W, x = !X) {
    S_1 = map M (w_1 = !w, x_1 in !x) {
      p = map K (b in !w_1, a in !x_1) {
        d = dot(b, a)
        yield +d
      }
      e = exp(p)
      t = map K (a_1 in !x_1) {
        r = row_sum(a_1)
        yield +r
      }
      y = col_scale(e, t)
      yield y
    }
    yield S_1
  }
  return S
}
