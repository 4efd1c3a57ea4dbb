# The first iteration was peeled off.
graph(X: N[M,N] = port) {
  s = map N (x in !X) {
    q = exp(x)
    s_1 = row_sum(q)
    yield +s_1
  }
  r = recip0(s)
  z = map N from 1 (x_1 in !X, r_1 = r; s) {
    y = row_scale(x_1, r_1)
    z_1 = row_max(y)
    yield max z_1
  }
  return z
}
# because: r stays in N from 1<row_scale row_max>: the first iteration of z was peeled off
