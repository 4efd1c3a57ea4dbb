# The scaled block is a result too.
graph(X: K[M,K] = port, c: [M], Y: K[N,K] = port) {
  p, S = map K (x in !X, v = c, y in !Y) {
    s = row_scale(x, v)
    d = dot(s, y)
    yield +d
    yield s
  }
  return p, S
}
# because: s itself leaves the map over K
