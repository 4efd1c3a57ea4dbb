# The vector is made in each iteration.
graph(X: K[M,K] = port, Y: K[N,K] = port) {
  p = map K (x in !X, y in !Y) {
    c = row_max(x)
    s = row_scale(x, c)
    d = dot(s, y)
    yield +d
  }
  return p
}
# because: c, the vector of row_scale, is made inside the map over K
