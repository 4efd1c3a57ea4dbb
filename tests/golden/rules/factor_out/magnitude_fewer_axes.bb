# Without the factor there are no rows: one number for all of them.
graph(X: N[M,N] = port, W: N[N] = port) {
  s = map N (x in !X, w in !W) {
    q = square(x)
    u = col_scale(q, w)
    s_1 = row_sum(u)
    yield +s_1
  }
  r = rsqrt(s)
  z = map N (r_1 = r, w_1 in !W) {
    u_1 = outer(r_1, w_1)
    a = abs(u_1)
    z_1 = row_max(a)
    yield max z_1
  }
  return z
}
# after
graph(X: N[M,N] = port, W: N[N] = port) {
  z = map N (w in !W) {
    a = abs(w)
    z_1 = row_max(a)
    yield max z_1
  }
  s = map N (x in !X, w_1 in !W) {
    q = square(x)
    u = col_scale(q, w_1)
    s_1 = row_sum(u)
    yield +s_1
  }
  r = rsqrt(s)
  t1 = z * abs(r) over [M]
  return t1
}
