# Added once for each block, whose number is not known.
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
# because: c stays in K<row_sum x * 2 add>: u is the same in every iteration over K, in part
