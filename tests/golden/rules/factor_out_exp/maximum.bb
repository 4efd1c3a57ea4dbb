# The largest is no sum.
graph(X: K[M,K] = port) {
  z = map K (x in !X) {
    t = row_max(x)
    yield max t
  }
  m = -z
  l = map K (x_1 in !X, c = m) {
    u = row_shift(x_1, c)
    e = exp(u)
    a = row_max(e)
    yield max a
  }
  return l
}
