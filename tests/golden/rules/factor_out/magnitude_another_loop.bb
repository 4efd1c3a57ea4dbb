# The list that they share is of a loop that the root does not wait for.
graph(X: N[M,N] = port, Y: N[M,N] = port) {
  t = map N (y in !Y) {
    t_1 = row_max(y)
    yield max t_1
  }
  s = map N (x in !X) {
    q = square(x)
    s_1 = row_sum(q)
    yield +s_1
  }
  r = rsqrt(s)
  z = map N (y_1 in !Y, r_1 = r) {
    u = row_scale(y_1, r_1)
    a = abs(u)
    z_1 = row_max(a)
    yield max z_1
  }
  return t, z
}
# because: r stays in N<row_scale abs(x) row_max>: it waits for no loop that shares a list
