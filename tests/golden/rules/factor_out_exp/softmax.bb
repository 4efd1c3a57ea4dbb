# A softmax with its own maximum: numerator and denominator.
graph(X: K[M,K] = port, Y: K[N,K] = port) {
  z = map K (x in !X) {
    t = row_max(x)
    yield max t
  }
  m = -z
  l, p = map K (x_1 in !X, c = m, y in !Y) {
    u = row_shift(x_1, c)
    e = exp(u)
    a = row_sum(e)
    d = dot(e, y)
    yield +a
    yield +d
  }
  return l, p
}
# after
graph(X: K[M,K] = port, Y: K[N,K] = port) {
  l, p = map K (x in !X, y in !Y) {
    e = exp(x)
    a = row_sum(e)
    d = dot(e, y)
    yield +a
    yield +d
  }
  z = map K (x_1 in !X) {
    t = row_max(x_1)
    yield max t
  }
  m = -z
  t1 = exp(m)
  t2 = mul(l, t1)
  t3 = row_scale(p, t1)
  return t2, t3
}
