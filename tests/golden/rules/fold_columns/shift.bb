# A shift of columns of centered rows leaves weighted row sums behind.
graph(X: K[M,K] = port, Y: K[N,K] = port, B: K[K] = port) {
  u, t = map K (x in !X) {
    q = square(x)
    b = row_sum(q)
    a = row_sum(x)
    yield +b
    yield +a
  }
  c = -(t / |K|)
  p = map K (x_1 in !X, v = c, g in !B, y in !Y) {
    s = row_shift(x_1, v)
    f = col_shift(s, g)
    d = dot(f, y)
    yield +d
  }
  return p, u
}
# after
graph(X: K[M,K] = port, Y: K[N,K] = port, B: K[K] = port) {
  u, t = map K (x in !X) {
    q = square(x)
    b = row_sum(q)
    a = row_sum(x)
    yield +b
    yield +a
  }
  c = -(t / |K|)
  p, t1 = map K (x_1 in !X, v = c, y in !Y, g in !B) {
    s = row_shift(x_1, v)
    d = dot(s, y)
    t2 = col_scale(y, g)
    t3 = row_sum(t2)
    yield +d
    yield +t3
  }
  t4 = col_shift(p, t1)
  return t4, u
}
