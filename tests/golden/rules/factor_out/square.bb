# Not linear.
graph(X: K[M,K] = port) {
  s = map K (x in !X) {
    t = row_sum(x)
    yield +t
  }
  p = map K (x_1 in !X, c = s) {
    r = row_scale(x_1, c)
    t_1 = square(r)
    a = row_sum(t_1)
    yield +a
  }
  return p
}
# because: c stays in K<row_scale square(x) row_sum>: a is a multiple of another power of it, or of its size
