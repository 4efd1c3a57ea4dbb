# Iteration 0, peeled off, has the scale still.
graph(X: K[M,K] = port, c: [M], Y: K[N,K] = port) {
  x = head K (!X)
  s = row_scale(x, c)
  y = head K (!Y)
  d = dot(s, y)
  p = map K from 1 (x2 in !X, v = c, y2 in !Y; d) {
    s2 = row_scale(x2, v)
    d2 = dot(s2, y2)
    yield +d2
  }
  return p
}
# because: the first iteration of p was peeled off
# wrong
graph(X: K[M,K] = port, c: [M], Y: K[N,K] = port) {
  x = head K (!X)
  s = row_scale(x, c)
  y = head K (!Y)
  d = dot(s, y)
  p = map K from 1 (x2 in !X, y2 in !Y; d) {
    d2 = dot(x2, y2)
    yield +d2
  }
  z = row_scale(p, c)
  return z
}
