# No other loop reads what this one reads: nothing is saved.
graph(X: N[M,N] = port, Y: N[M,N] = port) {
  s = map N (x in !X) {
    q = square(x)
    s_1 = row_sum(q)
    yield +s_1
  }
  r = rsqrt(s)
  z = map N (y in !Y, r_1 = r) {
    u = row_scale(y, r_1)
    a = abs(u)
    z_1 = row_max(a)
    yield max z_1
  }
  return z
}
