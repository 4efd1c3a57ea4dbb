# The sum itself is read as well.
graph(X: N[M,N] = port) {
  s = map N (x in !X) {
    q = square(x)
    s_1 = row_sum(q)
    yield +s_1
  }
  r = rsqrt(s)
  z = map N (x_1 in !X, s_2 = s, r_1 = r) {
    d = row_shift(x_1, s_2)
    y = row_scale(d, r_1)
    a = abs(y)
    z_1 = row_max(a)
    yield max z_1
  }
  return z
}
# because: s stays in N<row_shift row_scale abs(x) row_max>: it is none of exp, recip0, reciprocal: proofs do not decide whether it is negative
# because: r stays in N<row_shift row_scale abs(x) row_max>: s waits for the same loop
