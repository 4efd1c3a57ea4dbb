# The factor and its absolute value are two factors.
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
    u = add(a, y)
    z_1 = row_max(u)
    yield max z_1
  }
  return z
}
# because: r stays in N<row_scale abs(x) add row_max>: z is no multiple of it: a value takes add of elements and producers together
