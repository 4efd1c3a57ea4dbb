# It is added once for each block: a second sum.
graph(X: K[M,K] = port) {
  s = map K (x in !X) {
    t = row_sum(x)
    yield +t
  }
  p = map K (x_1 in !X, c = s) {
    r = row_sum(x_1)
    t_1 = c * 2
    u = add(r, t_1)
    yield +u
  }
  return p
}
# because: c stays in K<row_sum x * 2 add>: u is no multiple of it: a value takes add of elements and producers together
