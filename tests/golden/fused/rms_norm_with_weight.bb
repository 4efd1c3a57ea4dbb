graph(x: M,K[M,K], g: K[K], wT: N,K[N,K] = w(K,N)) {
  made = map M (x_1 in !x, g_1 = !g, w = !wT) {
    made_1 = map N (x_2 = !x_1, g_2 = !g_1, w_1 in !w) {
      made_2, s = map K (x_3 in !x_2, g_3 in !g_2, w_2 in !w_1) {
        y = col_scale(x_3, g_3)
        made_3 = dot(y, w_2)
        q = square(x_3)
        s_1 = row_sum(q)
        yield +made_3
        yield +s_1
      }
      r = rsqrt(s / |K| + 1e-06)
      t1 = row_scale(made_2, r)
      yield t1
    }
    yield made_1
  }
  return made
}
