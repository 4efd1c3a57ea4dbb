# A sum of exponentials is positive, but proofs do not follow products with it.
graph(X: N[M,N] = port) {
  s = map N (x in !X) {
    e = exp(x)
    s_1 = row_sum(e)
    yield +s_1
  }
  z = map N (x_1 in !X, r = s) {
    y = row_scale(x_1, r)
    z_1 = row_max(y)
    yield max z_1
  }
  return z
}
# because: r stays in N<row_scale row_max>: it is none of exp, recip0, reciprocal: proofs do not decide whether it is negative
