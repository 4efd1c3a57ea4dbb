# Rows shifted by a given vector are not centered.
graph(X: K[M,K] = port, Y: K[N,K] = port, B: K[K] = port, c: [M]) {
  p = map K (x in !X, v = c, g in !B, y in !Y) {
    s = row_shift(x, v)
    f = col_shift(s, g)
    d = dot(f, y)
    yield +d
  }
  return p
}
# because: the shift is not minus the mean of a row whose variance is taken: behind the product, digits would cancel where the shift is large
