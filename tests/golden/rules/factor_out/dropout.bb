# A product stands between the scale and the dot.
graph(X: K[M,K] = port, G: K[M,K] = port, Y: K[N,K] = port) {
  s = map K (x in !X) {
    t = row_sum(x)
    yield +t
  }
  p = map K (x_1 in !X, c = s, g in !G, y in !Y) {
    r = row_scale(x_1, c)
    t_1 = mul(r, g)
    d = dot(t_1, y)
    yield +d
  }
  return p
}
# after
graph(X: K[M,K] = port, G: K[M,K] = port, Y: K[N,K] = port) {
  p = map K (x in !X, g in !G, y in !Y) {
    t = mul(x, g)
    d = dot(t, y)
    yield +d
  }
  s = map K (x_1 in !X) {
    t_1 = row_sum(x_1)
    yield +t_1
  }
  t1 = row_scale(p, s)
  return t1
}
