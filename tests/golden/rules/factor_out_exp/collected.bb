# A list of exponentials is read as it is.
graph(X: K[M,K] = port) {
  z = map K (x in !X) {
    t = row_max(x)
    yield max t
  }
  m = -z
  l, q = map K (x_1 in !X, c = m) {
    u = row_shift(x_1, c)
    e = exp(u)
    a = row_sum(e)
    yield e
    yield +a
  }
  return l, q
}
# because: c stays in K<row_shift exp(x) row_sum>: e is not summed over K
