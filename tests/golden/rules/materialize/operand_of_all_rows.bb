# Nothing of the rows goes into the scaled weight: no map over them is around what computes it.
graph(x: M,K[M,K], w: N,K[N,K], g: K[K]) {
  y = map M (w_1 = !w, g_1 = !g, x_1 in !x) {
    z = map N (w_2 in !w_1, g_2 = !g_1, x_2 = !x_1) {
      p = map K (b in !w_2, g_3 in !g_2, a in !x_2) {
        s = col_scale(b, g_3)
        d = dot(a, s)
        yield +d
      }
      yield p
    }
    yield z
  }
  return y
}
# after
graph(x: M,K[M,K], w: N,K[N,K], g: K[K]) {
  s = map N (w_1 in !w, g_1 = !g) {
    s_1 = map K (b in !w_1, g_2 in !g_1) {
      s_2 = col_scale(b, g_2)
      yield s_2
    }
    yield s_1
  }
  y = map M (x_1 in !x, s_3 = !s) {
    z = map N (x_2 = !x_1, s_4 in !s_3) {
      p = map K (a in !x_2, s_5 in !s_4) {
        d = dot(a, s_5)
        yield +d
      }
      yield p
    }
    yield z
  }
  return y
}
