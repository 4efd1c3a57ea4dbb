# A shift by minus the mean leaves the sum of the row sums of the right operand behind.
graph(X: K[M,K] = port, Y: K[N,K] = port) {
  u, t = map K (x in !X) {
    q = square(x)
    b = row_sum(q)
    a = row_sum(x)
    yield +b
    yield +a
  }
  c = -(t / |K|)
  p = map K (x_1 in !X, v = c, y in !Y) {
    s = row_shift(x_1, v)
    d = dot(s, y)
    yield +d
  }
  return p, u
}
# after
graph(X: K[M,K] = port, Y: K[N,K] = port) {
  u, t = map K (x in !X) {
    q = square(x)
    b = row_sum(q)
    a = row_sum(x)
    yield +b
    yield +a
  }
  c = -(t / |K|)
  p, t1 = map K (x_1 in !X, y in !Y) {
    d = dot(x_1, y)
    t2 = row_sum(y)
    yield +d
    yield +t2
  }
  t3 = outer(c, t1)
  t4 = add(t3, p)
  return t4, u
}
