# One that changes along the sum is no power of a factor.
graph(X: K[M,K] = port, T: K[K]) {
  z = map K (x in !X) {
    t = row_max(x)
    yield max t
  }
  m = -z
  l = map K (x_1 in !X, c = m, b in !T) {
    u = row_shift(x_1, c)
    v = col_scale(u, b)
    e = exp(v)
    a = row_sum(e)
    yield +a
  }
  return l
}
# because: c stays in K<row_shift col_scale exp(x) row_sum>: no fold depends on it
