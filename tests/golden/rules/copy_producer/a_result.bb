# The scores are a result as well, which is stored anyway.
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
  l = map M (s_1 in !S) {
    t = map N (s_2 in !s_1) {
      r = row_sum(s_2)
      yield +r
    }
    yield t
  }
  m = map M (s_3 in !S) {
    u = map N (s_4 in !s_3) {
      v = row_max(s_4)
      yield max v
    }
    yield u
  }
  return l, m, S
}
# because: M<N<K<dot>>> makes a result of the program, which is stored anyway
