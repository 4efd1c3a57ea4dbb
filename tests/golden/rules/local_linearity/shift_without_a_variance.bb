# Nothing centers the row: no sum of its squares is taken.
graph(X: K[M,K] = port, Y: K[N,K] = port) {
  t = map K (x in !X) {
    a = row_sum(x)
    yield +a
  }
  c = -(t / |K|)
  p = map K (x_1 in !X, v = c, y in !Y) {
    s = row_shift(x_1, v)
    d = dot(s, y)
    yield +d
  }
  return p
}
# because: the shift is not minus the mean of a row whose variance is taken: behind the product, digits would cancel where the shift is large
