# A negative factor makes the maximum a minimum.
graph(X: N[M,N] = port) {
  s = map N (x in !X) {
    s_1 = row_sum(x)
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
# wrong
graph(X: N[M,N] = port) {
  m, s = map N (x in !X) {
    m_1 = row_max(x)
    s_1 = row_sum(x)
    yield max m_1
    yield +s_1
  }
  z = mul(m, s)
  return z
}
