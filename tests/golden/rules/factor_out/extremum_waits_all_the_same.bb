# Without the factor, the map still waits for the sum itself.
graph(X: N[M,N] = port) {
  s = map N (x in !X) {
    s_1 = row_sum(x)
    yield +s_1
  }
  r = exp(s)
  z = map N (x_1 in !X, s_2 = s, r_1 = r) {
    t = row_shift(x_1, s_2)
    y = row_scale(t, r_1)
    z_1 = row_max(y)
    yield max z_1
  }
  return z
}
# because: s stays in N<row_shift row_scale row_max>: it is none of exp, recip0, reciprocal: proofs do not decide whether it is negative
# because: r stays in N<row_shift row_scale row_max>: s waits for the same loop
