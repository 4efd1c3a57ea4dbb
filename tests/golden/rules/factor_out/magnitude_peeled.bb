# The first iteration was peeled off.
graph(X: N[M,N] = port) {
  s = map N (x in !X) {
    q = square(x)
    s_1 = row_sum(q)
    yield +s_1
  }
  r = rsqrt(s)
  z = map N from 1 (x_1 in !X, r_1 = r; s) {
    y = row_scale(x_1, r_1)
    a = abs(y)
    z_1 = row_max(a)
    yield max z_1
  }
  return z
}
# because: r stays in N from 1<row_scale abs(x) row_max>: the first iteration of z was peeled off
# wrong
graph(X: N[M,N] = port) {
  s = map N (x in !X) {
    q = square(x)
    s_1 = row_sum(q)
    yield +s_1
  }
  m = map N from 1 (x_1 in !X; s) {
    a = abs(x_1)
    z = row_max(a)
    yield max z
  }
  r = rsqrt(s)
  p = abs(r)
  z_1 = mul(m, p)
  return z_1
}
