# A vector that is scaled by the factor.
graph(X: K[M,K] = port, Y: K[N,K] = port) {
  s = map K (x in !X) {
    t = row_sum(x)
    yield +t
  }
  p = map K (y in !Y, c = s) {
    u = row_sum(y)
    r = outer(c, u)
    t_1 = r * 2
    yield +t_1
  }
  z = map K (y_1 in !Y) {
    e = row_max(y_1)
    yield max e
  }
  return p, z
}
# after
graph(X: K[M,K] = port, Y: K[N,K] = port) {
  s = map K (x in !X) {
    t = row_sum(x)
    yield +t
  }
  p = map K (y in !Y) {
    u = row_sum(y)
    t_1 = u * 2
    yield +t_1
  }
  t1 = outer(s, p)
  z = map K (y_1 in !Y) {
    e = row_max(y_1)
    yield max e
  }
  return t1, z
}
