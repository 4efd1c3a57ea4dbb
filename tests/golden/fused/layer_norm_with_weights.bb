graph(x: M,K[M,K], g: K[K], b: K[K], wT: N,K[N,K] = w(K,N)) {
  p = map M (w = !wT, b_1 = !b, g_1 = !g, x_1 in !x) {
    p_1 = map N (w_1 in !w, b_2 = !b_1, g_2 = !g_1, x_2 = !x_1) {
      t1, p_2, s, t2, s_1 = map K (w_2 in !w_1, b_3 in !b_2, g_3 in !g_2, x_3 in !x_2) {
        t3 = col_scale(w_2, b_3)
        t4 = row_sum(t3)
        t5 = col_scale(w_2, g_3)
        p_3 = dot(x_3, t5)
        q = square(x_3)
        s_2 = row_sum(q)
        t6 = row_sum(t5)
        s_3 = row_sum(x_3)
        yield +t4
        yield +p_3
        yield +s_2
        yield +t6
        yield +s_3
      }
      c = -(s_1 / |K|)
      t7 = outer(c, t2)
      t8 = add(t7, p_2)
      r = rsqrt(maximum(s / |K| - square(c), 0) + 1e-05)
      t9 = row_scale(t8, r)
      t10 = col_shift(t9, t1)
      yield t10
    }
    yield p_1
  }
  return p
}
