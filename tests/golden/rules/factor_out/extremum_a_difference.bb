# A difference of what is not negative may be negative.
graph(X: N[M,N] = port) {
  s, t = map N (x in !X) {
    e = exp(x)
    s_1 = row_sum(e)
    q = exp(x)
    t_1 = row_sum(q)
    yield +s_1
    yield +t_1
  }
  r = recip0(s - t)
  z = map N (x_1 in !X, r_1 = r) {
    y = row_scale(x_1, r_1)
    z_1 = row_max(y)
    yield max z_1
  }
  return z
}
# because: r stays in N<row_scale row_max>: it may be negative, for all that shows
