# A mask and a factor stand between the exponential and the sum.
graph(X: K[M,K] = port, G: K[M,K] = port, Y: K[N,K] = port) {
  z = map K (x in !X) {
    t = row_max(x)
    yield max t
  }
  m = -z
  l = map K (x_1 in !X, c = m, g in !G, y in !Y) {
    u = row_shift(x_1, c)
    e = where(g > 0, exp(u) / 2, 0)
    t_1 = mul(e, g)
    d = dot(t_1, y)
    yield +d
  }
  return l
}
# after
graph(X: K[M,K] = port, G: K[M,K] = port, Y: K[N,K] = port) {
  l = map K (g in !G, x in !X, y in !Y) {
    e = where(g > 0, exp(x) / 2, 0)
    t = mul(e, g)
    d = dot(t, y)
    yield +d
  }
  z = map K (x_1 in !X) {
    t_1 = row_max(x_1)
    yield max t_1
  }
  m = -z
  t1 = exp(m)
  t2 = row_scale(l, t1)
  return t2
}
