# The largest of numbers that may be negative: proofs do not decide that roots are positive.
graph(X: N[M,N] = port, W: N[N] = port) {
  s = map N (x in !X) {
    q = square(x)
    s_1 = row_sum(q)
    yield +s_1
  }
  r = rsqrt(s)
  z = map N (x_1 in !X, r_1 = r, w in !W) {
    y = row_scale(x_1, r_1)
    u = col_scale(y, w)
    a = -u
    z_1 = row_max(a)
    yield max z_1
  }
  return z
}
# because: r stays in N<row_scale col_scale -x row_max>: z is a multiple of another power of it, or of its size
