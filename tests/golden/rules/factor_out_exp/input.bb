# What is an input is waited for by nobody.
graph(X: K[M,K] = port, m: [M]) {
  l = map K (x in !X, c = m) {
    u = row_shift(x, c)
    e = exp(u)
    a = row_sum(e)
    yield +a
  }
  z = map K (x_1 in !X) {
    t = row_max(x_1)
    yield max t
  }
  return l, z
}
