# A row without elements: its root is infinite, and where hides it.
graph(X: N[M,N] = port, B: N[M,N] = port) {
  s = map N (b in !B, x in !X) {
    q = where(b > 0, square(x), 0) over [M,N]
    s_1 = row_sum(q)
    yield +s_1
  }
  r = rsqrt(s)
  z = map N (x_1 in !X, r_1 = r, b_1 in !B) {
    y = row_scale(x_1, r_1)
    u = where(b_1 > 0, y, 0) over [M,N]
    a = abs(u)
    z_1 = row_max(a)
    yield max z_1
  }
  return z
}
# because: r stays in N<row_scale where(x > 0, y, 0) abs(x) row_max>: where can hide it, and it may be infinite
