# A maximum does not commute with a scale that may be negative.
graph(X: K[M,K] = port, c: [M], Y: K[N,K] = port) {
  p = map K (x in !X, v = c, y in !Y) {
    s = row_scale(x, v)
    d = dot(s, y)
    yield max d
  }
  return p
}
# because: the dot of s is not only summed over K
# wrong
graph(X: K[M,K] = port, c: [M], Y: K[N,K] = port) {
  p = map K (x in !X, y in !Y) {
    d = dot(x, y)
    yield max d
  }
  z = row_scale(p, c)
  return z
}
