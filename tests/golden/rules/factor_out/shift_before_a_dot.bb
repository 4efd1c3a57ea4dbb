# What is added before a dot would leave a second sum of data behind.
graph(X: K[M,K] = port, G: K[M,K] = port, Y: K[N,K] = port) {
  s = map K (x in !X) {
    t = row_sum(x)
    yield +t
  }
  p = map K (x_1 in !X, c = s, g in !G, y in !Y) {
    r = row_shift(x_1, c)
    t_1 = mul(r, g)
    d = dot(t_1, y)
    yield +d
  }
  return p
}
# because: c stays in K<row_shift mul dot>: d is no multiple of it: a value takes add of elements and producers together
