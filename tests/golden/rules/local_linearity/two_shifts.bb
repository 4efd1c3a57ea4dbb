# One shift, two products with their own row sums.
graph(X: K[M,K] = port, c: [M], Y: K[N,K] = port, W: K[L,K] = port) {
  p, q = map K (x in !X, v = c, y in !Y, w in !W) {
    s = row_shift(x, v)
    d = dot(s, y)
    e = dot(s, w)
    yield +d
    yield +e
  }
  return p, q
}
# after
graph(X: K[M,K] = port, c: [M], Y: K[N,K] = port, W: K[L,K] = port) {
  p, q, t1, t2 = map K (x in !X, y in !Y, w in !W) {
    d = dot(x, y)
    e = dot(x, w)
    t3 = row_sum(y)
    t4 = row_sum(w)
    yield +d
    yield +e
    yield +t3
    yield +t4
  }
  t5 = outer(c, t1)
  t6 = add(t5, p)
  t7 = outer(c, t2)
  t8 = add(t7, q)
  return t6, t8
}
