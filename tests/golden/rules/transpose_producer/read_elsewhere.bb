# Somebody else reads the list in its old order: it would be made twice.
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
  l = map M (s_1 in !S) {
    t = map N (s_2 in !s_1) {
      r = row_sum(s_2)
      yield +r
    }
    yield t
  }
  return T, l
}
# because: S is also read by M<N<row_sum>>
