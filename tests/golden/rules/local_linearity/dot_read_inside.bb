# The product is read inside the map before it is summed.
graph(X: K[M,K] = port, c: [M], Y: K[N,K] = port) {
  p = map K (x in !X, v = c, y in !Y) {
    s = row_scale(x, v)
    d = dot(s, y)
    e = square(d)
    yield +e
  }
  return p
}
# because: the dot of s is not only summed over K
# wrong
graph(X: K[M,K] = port, c: [M], Y: K[N,K] = port) {
  p = map K (x in !X, y in !Y) {
    d = dot(x, y)
    e = square(d)
    yield +e
  }
  z = row_scale(p, c)
  return z
}
