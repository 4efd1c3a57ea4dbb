# The right operand is scaled instead, so that the row scale is next to the dot.
graph(X: K[M,K] = port, c: [M], G: K[K] = port, Y: K[N,K] = port) {
  p = map K (x in !X, v = c, g in !G, y in !Y) {
    s = row_scale(x, v)
    t = col_scale(s, g)
    d = dot(t, y)
    yield +d
  }
  return p
}
# after
graph(X: K[M,K] = port, c: [M], G: K[K] = port, Y: K[N,K] = port) {
  p = map K (x in !X, v = c, y in !Y, g in !G) {
    s = row_scale(x, v)
    t1 = col_scale(y, g)
    d = dot(s, t1)
    yield +d
  }
  return p
}
