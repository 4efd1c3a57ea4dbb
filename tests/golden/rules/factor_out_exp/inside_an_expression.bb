# The maximum is taken off within the expression.
graph(X: K[M,K] = port) {
  z = map K (x in !X) {
    t = row_max(x)
    yield max t
  }
  m = -z
  l = map K (x_1 in !X, c = m) {
    e = exp(x_1 * |K| ** -0.5 - c) over [M,K]
    a = row_sum(e)
    yield +a
  }
  return l
}
# after
graph(X: K[M,K] = port) {
  l = map K (x in !X) {
    e = exp(x * |K| ** -0.5)
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
