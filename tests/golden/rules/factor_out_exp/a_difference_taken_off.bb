# By -1: what is taken off is put on again.
graph(X: K[M,K] = port) {
  z = map K (x in !X) {
    t = row_max(x)
    yield max t
  }
  m = -z
  l = map K (x_1 in !X, c = m) {
    u = row_shift(x_1, c)
    e = exp(-u)
    a = row_sum(e)
    yield +a
  }
  return l
}
# after
graph(X: K[M,K] = port) {
  l = map K (x in !X) {
    e = exp(-x)
    a = row_sum(e)
    yield +a
  }
  z = map K (x_1 in !X) {
    t = row_max(x_1)
    yield max t
  }
  m = -z
  t1 = exp(-m)
  t2 = mul(l, t1)
  return t2
}
