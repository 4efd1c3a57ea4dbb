# Where a choice hides an infinite factor, 0 times the factor would be NaN.
graph(X: N[M,N] = port, B: N[M,N] = port) {
  s = map N (x in !X) {
    s_1 = row_sum(x)
    yield +s_1
  }
  r = exp(s)
  z = map N (x_1 in !X, r_1 = r, b in !B) {
    y = row_scale(x_1, r_1)
    u = where(b > 0, y, 0)
    z_1 = row_max(u)
    yield max z_1
  }
  return z
}
# because: r stays in N<row_scale where(x > 0, y, 0) row_max>: where can hide it, and it may be infinite
