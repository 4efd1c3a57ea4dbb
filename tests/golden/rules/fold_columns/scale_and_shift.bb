# The last operator makes way first: the bias of a norm, then its weight.
graph(X: K[M,K] = port, c: [M], G: K[K] = port, B: K[K] = port, Y: K[N,K] = port) {
  p = map K (x in !X, v = c, g in !G, b in !B, y in !Y) {
    s = row_scale(x, v)
    t = col_scale(s, g)
    u = col_shift(t, b)
    d = dot(u, y)
    yield +d
  }
  return p
}
# after
graph(X: K[M,K] = port, c: [M], G: K[K] = port, B: K[K] = port, Y: K[N,K] = port) {
  p, t1 = map K (x in !X, v = c, g in !G, y in !Y, b in !B) {
    s = row_scale(x, v)
    t = col_scale(s, g)
    d = dot(t, y)
    t2 = col_scale(y, b)
    t3 = row_sum(t2)
    yield +d
    yield +t3
  }
  t4 = col_shift(p, t1)
  return t4
}
