# What no map around it changes is computed once, before them all.
graph(x: M,K[M,K], g: K[K]) {
  y = map M (g_1 = !g, x_1 in !x) {
    s = map K (g_2 in !g_1) {
      t = row_sum(g_2)
      yield +t
    }
    z = map K (a in !x_1, s_1 = s) {
      u = a * s_1 over [M,K]
      yield u
    }
    yield z
  }
  return y
}
# after
graph(x: M,K[M,K], g: K[K]) {
  s = map K (g_1 in !g) {
    t = row_sum(g_1)
    yield +t
  }
  y = map M (x_1 in !x, s_1 = s) {
    z = map K (a in !x_1, s_2 = s_1) {
      u = a * s_2 over [M,K]
      yield u
    }
    yield z
  }
  return y
}
