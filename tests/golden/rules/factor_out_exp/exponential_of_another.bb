# A function of it that is no exponential.
graph(X: K[M,K] = port) {
  z = map K (x in !X) {
    t = row_max(x)
    yield max t
  }
  m = -z
  l = map K (x_1 in !X, c = m) {
    u = row_shift(x_1, c)
    e = sigmoid(u)
    a = row_sum(e)
    yield +a
  }
  return l
}
# because: c stays in K<row_shift sigmoid(x) row_sum>: no fold depends on it
