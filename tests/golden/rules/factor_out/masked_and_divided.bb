# So may a choice, a quotient, a negative and a sum.
graph(X: K[M,K] = port, G: K[M,K] = port, Y: K[N,K] = port) {
  s = map K (x in !X) {
    t = row_sum(x)
    yield +t
  }
  p = map K (x_1 in !X, c = s, g in !G) {
    r = row_scale(x_1, c)
    t_1 = where(g > 0, -(r / 3) + r, 0)
    a = row_sum(t_1)
    yield +a
  }
  return p
}
# after
graph(X: K[M,K] = port, G: K[M,K] = port, Y: K[N,K] = port) {
  p = map K (g in !G, x in !X) {
    t = where(g > 0, -(x / 3) + x, 0)
    a = row_sum(t)
    yield +a
  }
  s = map K (x_1 in !X) {
    t_1 = row_sum(x_1)
    yield +t_1
  }
  t1 = mul(p, s)
  return t1
}
