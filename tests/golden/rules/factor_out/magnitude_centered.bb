# The mean is of the same loop, and it stays: two loops are two loops.
graph(X: N[M,N] = port) {
  t, s = map N (x in !X) {
    t_1 = row_sum(x)
    q = square(x)
    s_1 = row_sum(q)
    yield +t_1
    yield +s_1
  }
  c = -t
  r = rsqrt(s)
  z = map N (x_1 in !X, c_1 = c, r_1 = r) {
    d = row_shift(x_1, c_1)
    y = row_scale(d, r_1)
    a = abs(y)
    z_1 = row_max(a)
    yield max z_1
  }
  return z
}
# because: c stays in N<row_shift row_scale abs(x) row_max>: it is none of exp, recip0, reciprocal: proofs do not decide whether it is negative
# because: r stays in N<row_shift row_scale abs(x) row_max>: c waits for the same loop
