# The products are collected, not summed.
graph(X: K[M,K] = port, c: [M], Y: K[N,K] = port) {
  P = map K (x in !X, v = c, y in !Y) {
    s = row_scale(x, v)
    d = dot(s, y)
    yield d
  }
  return P
}
# because: the dot of s is not only summed over K
