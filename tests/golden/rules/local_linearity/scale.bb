# A scale of rows by a vector that all iterations share waits until after the sum.
graph(X: K[M,K] = port, c: [M], Y: K[N,K] = port) {
  p = map K (x in !X, v = c, y in !Y) {
    s = row_scale(x, v)
    d = dot(s, y)
    yield +d
  }
  return p
}
# after
graph(X: K[M,K] = port, c: [M], Y: K[N,K] = port) {
  p = map K (x in !X, y in !Y) {
    d = dot(x, y)
    yield +d
  }
  t1 = row_scale(p, c)
  return t1
}
