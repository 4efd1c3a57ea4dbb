# Choices of choices, in several operators.
graph(X: K[M,K] = port, G: K[M,K] = port) {
  s = map K (x in !X) {
    t = row_sum(x)
    yield +t
  }
  p = map K (g in !G, x_1 in !X, c = s) {
    h = g > 0
    r = row_scale(x_1, c)
    t_1 = where(h, r, 0)
    n = -t_1
    u = where(g < 2, t_1, n)
    a = row_sum(u)
    yield +a
  }
  return p
}
# after
graph(X: K[M,K] = port, G: K[M,K] = port) {
  p = map K (g in !G, x in !X) {
    h = g > 0
    t = where(h, x, 0)
    n = -t
    u = where(g < 2, t, n)
    a = row_sum(u)
    yield +a
  }
  s = map K (x_1 in !X) {
    t_1 = row_sum(x_1)
    yield +t_1
  }
  t1 = mul(p, s)
  return t1
}
