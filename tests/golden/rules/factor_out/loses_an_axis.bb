# M is the axis of a list-only dim, which no part shows.
graph(X: K[K] = port) {
  s = map K (x in !X) {
    t = row_sum(x)
    yield +t
  }
  p = map K (x_1 in !X, c = s) {
    r = x_1 * c over [M,K]
    a = row_sum(r)
    yield +a
  }
  return p
}
# because: c stays in K<x * y row_sum>: a would lose its axis M
