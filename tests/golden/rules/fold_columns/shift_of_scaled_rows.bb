# Rows that are only scaled may be near minus what is added to their columns.
graph(X: K[M,K] = port, Y: K[N,K] = port, B: K[K] = port, c: [M]) {
  p = map K (x in !X, v = c, g in !B, y in !Y) {
    s = row_scale(x, v)
    f = col_shift(s, g)
    d = dot(f, y)
    yield +d
  }
  return p
}
# because: col_shift shifts rows that are not centered: digits would cancel
