# The factor stands in the product twice.
graph(X: N[M,N] = port) {
  s = map N (x in !X) {
    q = square(x)
    s_1 = row_sum(q)
    yield +s_1
  }
  r = rsqrt(s)
  z = map N (x_1 in !X, r_1 = r) {
    y = row_scale(x_1, r_1)
    u = row_scale(y, r_1)
    a = abs(u)
    z_1 = row_max(a)
    yield max z_1
  }
  return z
}
# because: r stays in N<row_scale row_scale abs(x) row_max>: z is a multiple of another power of it, or of its size
# wrong
graph(X: N[M,N] = port) {
  m, s = map N (x in !X) {
    a = abs(x)
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
