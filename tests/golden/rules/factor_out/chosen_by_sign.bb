# Which elements are chosen depends on the sign of the factor.
graph(X: K[M,K] = port) {
  s = map K (x in !X) {
    t = row_sum(x)
    yield +t
  }
  p = map K (x_1 in !X, c = s) {
    r = row_scale(x_1, c)
    u = where(r > 0, r, 0)
    a = row_sum(u)
    yield +a
  }
  return p
}
# because: c stays in K<row_scale where(x > 0, x, 0) row_sum>: a is no multiple of it: a value takes gt of elements and producers together
