# A shift of rows leaves the sum of the row sums of the right operand behind.
graph(X: K[M,K] = port, c: [M], Y: K[N,K] = port) {
  p = map K (x in !X, v = c, y in !Y) {
    s = row_shift(x, v)
    d = dot(s, y)
    yield +d
  }
  return p
}
# after
graph(X: K[M,K] = port, c: [M], Y: K[N,K] = port) {
  p, t1 = map K (x in !X, y in !Y) {
    d = dot(x, y)
    t2 = row_sum(y)
    yield +d
    yield +t2
  }
  t3 = outer(c, t1)
  t4 = add(t3, p)
  return t4
}
