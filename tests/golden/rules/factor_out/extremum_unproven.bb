# A sum of squares is not negative, but proofs cannot use it.
graph(X: N[M,N] = port) {
  E, s = map N (x in !X) {
    e = square(x)
    s_1 = row_sum(e)
    yield e
    yield +s_1
  }
  r = recip0(s)
  z = map N (e_1 in !E, r_1 = r) {
    y = row_scale(e_1, r_1)
    z_1 = row_max(y)
    yield max z_1
  }
  return z
}
# because: r stays in N<row_scale row_max>: it may be negative, for all that shows
