# One for each block: it changes from one iteration to the next.
graph(X: K[M,K] = port, T: K[M]) {
  z = map K (x in !X) {
    t = row_max(x)
    yield max t
  }
  m = -z
  l = map K (x_1 in !X, c = m, b in !T) {
    u = row_shift(x_1, c)
    v = row_scale(u, b)
    e = exp(v)
    a = row_sum(e)
    yield +a
  }
  return l
}
# because: c stays in K<row_shift row_scale exp(x) row_sum>: no fold depends on it
