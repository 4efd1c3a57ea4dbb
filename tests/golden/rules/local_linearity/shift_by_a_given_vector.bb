# A vector that is given may be near minus the row: digits would cancel behind the dot.
graph(X: K[M,K] = port, Y: K[N,K] = port, c: [M]) {
  p = map K (x in !X, v = c, y in !Y) {
    s = row_shift(x, v)
    d = dot(s, y)
    yield +d
  }
  return p
}
# because: the shift is not minus the mean of a row whose variance is taken: behind the product, digits would cancel where the shift is large
