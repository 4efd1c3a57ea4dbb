# A condition is a number: 0 or 1.
graph(X: K[M,K] = port, G: K[M,K] = port) {
  s = map K (x in !X) {
    t = row_sum(x)
    yield +t
  }
  p = map K (x_1 in !X, c = s, g in !G) {
    r = row_scale(x_1, c)
    t_1 = r * (g > 0)
    a = row_sum(t_1)
    yield +a
  }
  return p
}
# after
graph(X: K[M,K] = port, G: K[M,K] = port) {
  p = map K (x in !X, g in !G) {
    t = x * (g > 0)
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
