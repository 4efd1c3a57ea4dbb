# The factor is 1 times itself.
graph(X: K[M,K] = port) {
  s = map K (x in !X) {
    t = row_sum(x)
    yield +t
  }
  p = map K (x_1 in !X, c = s) {
    r = row_scale(x_1, c)
    u = row_shift(r, c)
    a = row_sum(u)
    yield +a
  }
  return p
}
# after
graph(X: K[M,K] = port) {
  p = map K (x in !X) {
    u = x + 1
    a = row_sum(u)
    yield +a
  }
  s = map K (x_1 in !X) {
    t = row_sum(x_1)
    yield +t
  }
  t1 = mul(p, s)
  return t1
}
