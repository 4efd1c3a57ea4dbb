# The largest element of a normed row, by its size.
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
    a = abs(u)
    z_1 = row_max(a)
    yield max z_1
  }
  return z
}
# after
graph(X: N[M,N] = port, W: N[N] = port) {
  z = map N (x in !X, w in !W) {
    u = col_scale(x, w)
    a = abs(u)
    z_1 = row_max(a)
    yield max z_1
  }
  s = map N (x_1 in !X) {
    q = square(x_1)
    s_1 = row_sum(q)
    yield +s_1
  }
  r = rsqrt(s)
  t1 = z * abs(r)
  return t1
}
