# Each sum gets the factor; what does not depend on it stays.
graph(X: K[M,K] = port, G: K[M,K] = port, Y: K[N,K] = port) {
  s = map K (x in !X) {
    t = row_sum(x)
    yield +t
  }
  p, q, z = map K (x_1 in !X, c = s, g in !G, y in !Y) {
    r = row_scale(x_1, c)
    t_1 = mul(r, g)
    d = dot(t_1, y)
    a = row_sum(r)
    b = row_max(g)
    yield +d
    yield +a
    yield max b
  }
  return p, q, z
}
# after
graph(X: K[M,K] = port, G: K[M,K] = port, Y: K[N,K] = port) {
  z, p, q = map K (g in !G, x in !X, y in !Y) {
    b = row_max(g)
    t = mul(x, g)
    d = dot(t, y)
    a = row_sum(x)
    yield max b
    yield +d
    yield +a
  }
  s = map K (x_1 in !X) {
    t_1 = row_sum(x_1)
    yield +t_1
  }
  t1 = row_scale(p, s)
  t2 = mul(q, s)
  return t1, t2, z
}
