# The largest of the sums is no sum.
graph(X: K[M,K] = port, G: K[M,K] = port) {
  s = map K (x in !X) {
    t = row_sum(x)
    yield +t
  }
  p, q = map K (x_1 in !X, c = s, g in !G) {
    r = row_scale(x_1, c)
    t_1 = mul(r, g)
    a = row_sum(t_1)
    b = row_sum(g)
    yield max a
    yield +b
  }
  return p, q
}
# because: c stays in K<row_scale mul row_sum row_sum>: a is not summed over K
