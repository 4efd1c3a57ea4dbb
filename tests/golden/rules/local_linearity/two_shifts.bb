# One shift, two products with their own row sums.
graph(X: K[M,K] = port, Y: K[N,K] = port, W: K[L,K] = port) {
  u, t = map K (x in !X) {
    q = square(x)
    b = row_sum(q)
    a = row_sum(x)
    yield +b
    yield +a
  }
  c = -(t / |K|)
  p, r = map K (x_1 in !X, v = c, y in !Y, w in !W) {
    s = row_shift(x_1, v)
    d = dot(s, y)
    e = dot(s, w)
    yield +d
    yield +e
  }
  return p, r, u
}
# after
graph(X: K[M,K] = port, Y: K[N,K] = port, W: K[L,K] = port) {
  u, t = map K (x in !X) {
    q = square(x)
    b = row_sum(q)
    a = row_sum(x)
    yield +b
    yield +a
  }
  c = -(t / |K|)
  p, r, t1, t2 = map K (x_1 in !X, y in !Y, w in !W) {
    d = dot(x_1, y)
    e = dot(x_1, w)
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
  t8 = add(t7, r)
  return t6, t8, u
}
