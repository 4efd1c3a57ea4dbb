# Iteration 0, peeled off, has the factor still.
graph(X: K[M,K] = port, G: K[M,K] = port) {
  s = map K (x in !X) {
    t = row_sum(x)
    yield +t
  }
  x_1 = head K (!X)
  a = row_scale(x_1, s)
  b = row_sum(a)
  p = map K from 1 (x_2 in !X, c = s; b) {
    r = row_scale(x_2, c)
    t_1 = row_sum(r)
    yield +t_1
  }
  return p
}
# because: c stays in K from 1<row_scale row_sum>: the first iteration of p was peeled off
