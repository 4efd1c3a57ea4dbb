# What is added to a row would leave a second sum: both may be large where their difference is not.
graph(X: K[M,K] = port, G: K[M,K] = port, Y: K[N,K] = port) {
  s = map K (x in !X) {
    t = row_sum(x)
    yield +t
  }
  p, q = map K (x_1 in !X, c = s, g in !G) {
    r = row_shift(x_1, c)
    t_1 = where(g > 0, r, 0)
    a = row_sum(t_1)
    b = row_sum(r)
    yield +a
    yield +b
  }
  return p, q
}
# because: c stays in K<row_shift where(x > 0, y, 0) row_sum row_sum>: a is no multiple of it: a value takes add of elements and producers together
