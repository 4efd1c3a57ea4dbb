# A condition is a number: 0 or 1.
graph(X: K[M,K] = port, G: K[M,K] = port) {
  s = map K (x in !X) {
    t = row_sum(x)
    yield +t
  }
  p = map K (x_1 in !X, c = s, g in !G) {
    r = row_shift(x_1, c)
    t_1 = r * (g > 0)
    a = row_sum(t_1)
    yield +a
  }
  return p
}
# after
graph(X: K[M,K] = port, G: K[M,K] = port) {
  t1, p = map K (x in !X, g in !G) {
    t = x * (g > 0)
    a = row_sum(t)
    t_1 = g > 0
    a_1 = row_sum(t_1)
    yield +a
    yield +a_1
  }
  s = map K (x_1 in !X) {
    t_2 = row_sum(x_1)
    yield +t_2
  }
  t2 = mul(p, s)
  t3 = add(t1, t2)
  return t3
}
