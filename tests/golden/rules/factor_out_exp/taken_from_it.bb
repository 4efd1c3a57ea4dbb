# The elements are taken off.
graph(X: K[M,K] = port) {
  z = map K (x in !X) {
    t = row_min(x)
    yield min t
  }
  m = -z
  l = map K (c = m, x_1 in !X) {
    e = exp(c - x_1) over [M,K]
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
    t = row_min(x_1)
    yield min t
  }
  m = -z
  t1 = exp(m)
  t2 = mul(l, t1)
  return t2
}
