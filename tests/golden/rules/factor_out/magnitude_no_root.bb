# Weights that are large where the row is large: their products overflow without the factor.
graph(X: N[M,N] = port, W: N[N] = port) {
  t = map N (x in !X) {
    a = abs(x)
    t_1 = row_max(a)
    yield max t_1
  }
  r = reciprocal(t)
  z = map N (x_1 in !X, r_1 = r, w in !W) {
    y = row_scale(x_1, r_1)
    u = col_scale(y, w)
    a_1 = abs(u)
    z_1 = row_max(a_1)
    yield max z_1
  }
  return z
}
# because: r stays in N<row_scale col_scale abs(x) row_max>: it may be negative, for all that shows
