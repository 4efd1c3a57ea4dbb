# An exponential of an exponential has no factor.
graph(X: K[M,K] = port) {
  z = map K (x in !X) {
    t = row_max(x)
    yield max t
  }
  m = -z
  l = map K (x_1 in !X, c = m) {
    u = row_shift(x_1, c)
    e = exp(u)
    f = exp(e)
    a = row_sum(f)
    yield +a
  }
  return l
}
# because: c stays in K<row_shift exp(x) exp(x) row_sum>: a is no multiple of it: a value takes an exponential of it
