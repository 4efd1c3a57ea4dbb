# A function of the product that is not linear.
graph(X: N[M,N] = port) {
  s = map N (x in !X) {
    q = square(x)
    s_1 = row_sum(q)
    yield +s_1
  }
  r = rsqrt(s)
  z = map N (x_1 in !X, r_1 = r) {
    y = row_scale(x_1, r_1)
    e = exp(y)
    a = abs(e)
    z_1 = row_max(a)
    yield max z_1
  }
  return z
}
# because: r stays in N<row_scale exp(x) abs(x) row_max>: z is no multiple of it: a value takes an exponential of it
# wrong
graph(X: N[M,N] = port) {
  m, s = map N (x in !X) {
    e = exp(x)
    a = abs(e)
    z = row_max(a)
    q = square(x)
    s_1 = row_sum(q)
    yield max z
    yield +s_1
  }
  r = rsqrt(s)
  p = abs(r)
  z_1 = mul(m, p)
  return z_1
}
