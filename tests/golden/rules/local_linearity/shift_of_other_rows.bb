# The mean of the rows, but what is shifted is their square.
graph(X: K[M,K] = port, Y: K[N,K] = port) {
  u, t = map K (x in !X) {
    q = square(x)
    b = row_sum(q)
    a = row_sum(x)
    yield +b
    yield +a
  }
  c = -(t / |K|)
  p = map K (x_1 in !X, v = c, y in !Y) {
    e = square(x_1)
    s = row_shift(e, v)
    d = dot(s, y)
    yield +d
  }
  return p, u
}
# because: the shift is not minus the mean of a row whose variance is taken: behind the product, digits would cancel where the shift is large
