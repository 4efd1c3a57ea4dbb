# A shift of columns leaves weighted row sums behind.
graph(X: K[M,K] = port, c: [M], B: K[K] = port, Y: K[N,K] = port) {
  p = map K (x in !X, v = c, b in !B, y in !Y) {
    s = row_shift(x, v)
    t = col_shift(s, b)
    d = dot(t, y)
    yield +d
  }
  return p
}
# after
graph(X: K[M,K] = port, c: [M], B: K[K] = port, Y: K[N,K] = port) {
  p, t1 = map K (x in !X, v = c, y in !Y, b in !B) {
    s = row_shift(x, v)
    d = dot(s, y)
    t2 = col_scale(y, b)
    t3 = row_sum(t2)
    yield +d
    yield +t3
  }
  t4 = col_shift(p, t1)
  return t4
}
