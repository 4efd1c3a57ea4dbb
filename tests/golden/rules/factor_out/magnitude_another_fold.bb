# The rows are summed, and the largest sum is taken.
graph(X: N[M,N] = port) {
  s = map N (x in !X) {
    q = square(x)
    s_1 = row_sum(q)
    yield +s_1
  }
  r = rsqrt(s)
  z = map N (x_1 in !X, r_1 = r) {
    y = row_scale(x_1, r_1)
    a = abs(y)
    z_1 = row_sum(a)
    yield max z_1
  }
  return z
}
# because: r stays in N<row_scale abs(x) row_sum>: z is no multiple of it: a value takes row_sum of it
