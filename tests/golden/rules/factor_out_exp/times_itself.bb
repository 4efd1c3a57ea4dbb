# A product of two exponentials is not linear in one.
graph(X: K[M,K] = port) {
  z = map K (x in !X) {
    t = row_max(x)
    yield max t
  }
  m = -z
  l = map K (x_1 in !X, c = m) {
    u = row_shift(x_1, c)
    e = exp(u)
    t_1 = mul(e, e)
    a = row_sum(t_1)
    yield +a
  }
  return l
}
# because: c stays in K<row_shift exp(x) mul row_sum>: a is a multiple of another power of it, or of its size
