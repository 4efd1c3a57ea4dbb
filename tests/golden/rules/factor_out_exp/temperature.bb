# A temperature of each row, shared by all iterations.
graph(X: K[M,K] = port, T: [M]) {
  z = map K (x in !X) {
    t = row_max(x)
    yield max t
  }
  m = -z
  l = map K (x_1 in !X, c = m, b = T) {
    u = row_shift(x_1, c)
    v = row_scale(u, b)
    e = exp(v)
    a = row_sum(e)
    yield +a
  }
  return l
}
# after
graph(X: K[M,K] = port, T: [M]) {
  l = map K (x in !X, b = T) {
    v = row_scale(x, b)
    e = exp(v)
    a = row_sum(e)
    yield +a
  }
  z = map K (x_1 in !X) {
    t = row_max(x_1)
    yield max t
  }
  m = -z
  t1 = exp(m * T)
  t2 = mul(l, t1)
  return t2
}
