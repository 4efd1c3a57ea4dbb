# A row in place of a block is weighted row sums.
graph(X: K[M,K] = port, H: K[K] = port, Y: K[N,K] = port) {
  s = map K (x in !X) {
    t = row_sum(x)
    yield +t
  }
  p = map K (c = s, h in !H, y in !Y) {
    t_1 = outer(c, h)
    d = dot(t_1, y)
    yield +d
  }
  z = map K (y_1 in !Y) {
    e = row_max(y_1)
    yield max e
  }
  return p, z
}
# after
graph(X: K[M,K] = port, H: K[K] = port, Y: K[N,K] = port) {
  s = map K (x in !X) {
    t = row_sum(x)
    yield +t
  }
  p = map K (y in !Y, h in !H) {
    t1 = col_scale(y, h)
    d = row_sum(t1)
    yield +d
  }
  t2 = outer(s, p)
  z = map K (y_1 in !Y) {
    e = row_max(y_1)
    yield max e
  }
  return t2, z
}
