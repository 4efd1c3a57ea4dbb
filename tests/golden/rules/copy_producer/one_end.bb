# All that reads the scores meets in one sum.
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
  E = map M (s_1 in !S) {
    e = map N (s_2 in !s_1) {
      f = exp(s_2)
      yield f
    }
    yield e
  }
  G = map M (s_3 in !S, e_1 in !E) {
    g = map N (s_4 in !s_3, e_2 in !e_1) {
      h = mul(s_4, e_2)
      yield h
    }
    yield g
  }
  l = map M (g_1 in !G) {
    t = map N (g_2 in !g_1) {
      r = row_sum(g_2)
      yield +r
    }
    yield t
  }
  return l
}
# because: all readers of M<N<K<dot>>> serve M<N<row_sum>>
