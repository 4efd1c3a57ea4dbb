# One scale, two products: both are scaled afterwards; other results stay.
graph(X: K[M,K] = port, c: [M], Y: K[N,K] = port, W: K[L,K] = port) {
  p, q, t = map K (x in !X, v = c, y in !Y, w in !W) {
    s = row_scale(x, v)
    d = dot(s, y)
    e = dot(s, w)
    r = row_sum(x)
    yield +d
    yield +e
    yield +r
  }
  return p, q, t
}
# after
graph(X: K[M,K] = port, c: [M], Y: K[N,K] = port, W: K[L,K] = port) {
  t, p, q = map K (x in !X, y in !Y, w in !W) {
    r = row_sum(x)
    d = dot(x, y)
    e = dot(x, w)
    yield +r
    yield +d
    yield +e
  }
  t1 = row_scale(p, c)
  t2 = row_scale(q, c)
  return t1, t2, t
}
