# The vector changes with K: it is no common factor of the sum.
graph(X: K[M,K] = port, C: K[M] = port, Y: K[N,K] = port) {
  p = map K (x in !X, c in !C, y in !Y) {
    s = row_scale(x, c)
    d = dot(s, y)
    yield +d
  }
  return p
}
# because: c, the vector of row_scale, changes with K
# wrong
graph(X: K[M,K] = port, C: K[M] = port, Y: K[N,K] = port) {
  p = map K (x in !X, y in !Y) {
    d = dot(x, y)
    yield +d
  }
  c = reduce + K (!C)
  z = row_scale(p, c)
  return z
}
