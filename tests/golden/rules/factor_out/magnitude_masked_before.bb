# What is masked before it is scaled shows an infinite root, too.
graph(X: N[M,N] = port, B: N[M,N] = port) {
  s = map N (b in !B, x in !X) {
    q = where(b > 0, square(x), 0) over [M,N]
    s_1 = row_sum(q)
    yield +s_1
  }
  r = rsqrt(s)
  z = map N (b_1 in !B, x_1 in !X, r_1 = r) {
    y = where(b_1 > 0, x_1, 0) over [M,N]
    u = row_scale(y, r_1)
    a = abs(u)
    z_1 = row_max(a)
    yield max z_1
  }
  return z
}
# after
graph(X: N[M,N] = port, B: N[M,N] = port) {
  z = map N (b in !B, x in !X) {
    y = where(b > 0, x, 0) over [M,N]
    a = abs(y)
    z_1 = row_max(a)
    yield max z_1
  }
  s = map N (b_1 in !B, x_1 in !X) {
    q = where(b_1 > 0, square(x_1), 0) over [M,N]
    s_1 = row_sum(q)
    yield +s_1
  }
  r = rsqrt(s)
  t1 = z * abs(r)
  return t1
}
