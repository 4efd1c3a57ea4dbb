# A list is read as it is.
graph(X: K[M,K] = port) {
  s = map K (x in !X) {
    t = row_sum(x)
    yield +t
  }
  p, q = map K (x_1 in !X, c = s) {
    r = row_scale(x_1, c)
    a = row_sum(r)
    yield r
    yield +a
  }
  return p, q
}
# because: c stays in K<row_scale row_sum>: r is not summed over K
