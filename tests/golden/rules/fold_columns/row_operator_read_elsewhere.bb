# The row operator could not leave: another operator reads its block.
graph(X: K[M,K] = port, c: [M], G: K[K] = port, Y: K[N,K] = port) {
  p, q = map K (x in !X, v = c, g in !G, y in !Y) {
    s = row_scale(x, v)
    t = col_scale(s, g)
    d = dot(t, y)
    m = row_max(s)
    yield +d
    yield max m
  }
  return p, q
}
# because: s is read by row_max, not by a dot alone
