# What is added to the product is not scaled.
graph(X: N[M,N] = port, W: N[N] = port) {
  s = map N (x in !X) {
    q = square(x)
    s_1 = row_sum(q)
    yield +s_1
  }
  r = rsqrt(s)
  z = map N (x_1 in !X, r_1 = r, w in !W) {
    y = row_scale(x_1, r_1)
    u = col_shift(y, w)
    a = abs(u)
    z_1 = row_max(a)
    yield max z_1
  }
  return z
}
# because: r stays in N<row_scale col_shift abs(x) row_max>: z is no multiple of it: a value takes add of elements and producers together
# wrong
graph(X: N[M,N] = port, W: N[N] = port) {
  m, s = map N (x in !X, w in !W) {
    u = col_shift(x, w)
    a = abs(u)
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
