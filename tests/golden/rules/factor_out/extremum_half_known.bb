# A product with a factor that may be anything.
graph(X: N[M,N] = port, c: [M]) {
  s = map N (x in !X) {
    e = exp(x)
    s_1 = row_sum(e)
    yield +s_1
  }
  q = mul(s, c)
  r = recip0(q)
  z = map N (x_1 in !X, r_1 = r) {
    y = row_scale(x_1, r_1)
    z_1 = row_max(y)
    yield max z_1
  }
  return z
}
# because: r stays in N<row_scale row_max>: it may be negative, for all that shows
