# The last operator makes way first: the bias of a norm, then its weight.
graph(X: K[M,K] = port, Y: K[N,K] = port, B: K[K] = port, G: K[K] = port, r: [M]) {
  u, t = map K (x in !X) {
    q = square(x)
    b = row_sum(q)
    a = row_sum(x)
    yield +b
    yield +a
  }
  c = -(t / |K|)
  p = map K (x_1 in !X, v = c, r_1 = r, g in !G, h in !B, y in !Y) {
    s = row_shift(x_1, v)
    n = row_scale(s, r_1)
    f = col_scale(n, g)
    e = col_shift(f, h)
    d = dot(e, y)
    yield +d
  }
  return p, u
}
# after
graph(X: K[M,K] = port, Y: K[N,K] = port, B: K[K] = port, G: K[K] = port, r: [M]) {
  u, t = map K (x in !X) {
    q = square(x)
    b = row_sum(q)
    a = row_sum(x)
    yield +b
    yield +a
  }
  c = -(t / |K|)
  p, t1 = map K (x_1 in !X, v = c, r_1 = r, g in !G, y in !Y, h in !B) {
    s = row_shift(x_1, v)
    n = row_scale(s, r_1)
    f = col_scale(n, g)
    d = dot(f, y)
    t2 = col_scale(y, h)
    t3 = row_sum(t2)
    yield +d
    yield +t3
  }
  t4 = col_shift(p, t1)
  return t4, u
}
