# A logarithm that takes an exponential back is not followed.
graph(X: K[M,K] = port) {
  z = map K (x in !X) {
    t = row_max(x)
    yield max t
  }
  m = -z
  l = map K (x_1 in !X, c = m) {
    u = row_shift(x_1, c)
    e = exp(u)
    f = exp(log(e))
    a = row_sum(f)
    yield +a
  }
  return l
}
# because: c stays in K<row_shift exp(x) exp(log(x)) row_sum>: a is no multiple of it: a value takes log of elements and producers together
