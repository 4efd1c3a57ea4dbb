# Powers are taken out one after the other.
graph(X: K[M,K] = port) {
  z = map K (x in !X) {
    t = row_max(x)
    yield max t
  }
  m = -z
  l, q = map K (x_1 in !X, c = m) {
    u = row_shift(x_1, c)
    e = exp(u)
    a = row_sum(e)
    f = exp(u * 2)
    b = row_sum(f)
    yield +a
    yield +b
  }
  return l, q
}
# after
graph(X: K[M,K] = port) {
  z = map K (x in !X) {
    t = row_max(x)
    yield max t
  }
  m = -z
  q, l = map K (x_1 in !X, c = m) {
    u = row_shift(x_1, c)
    f = exp(u * 2)
    b = row_sum(f)
    e = exp(x_1)
    a = row_sum(e)
    yield +b
    yield +a
  }
  t1 = exp(m)
  t2 = mul(l, t1)
  return t2, q
}
