# Each product has its own right operand.
graph(X: K[M,K] = port, c: [M], G: K[K] = port, Y: K[N,K] = port, W: K[L,K] = port) {
  p, q = map K (x in !X, v = c, g in !G, y in !Y, w in !W) {
    s = row_scale(x, v)
    t = col_scale(s, g)
    d = dot(t, y)
    e = dot(t, w)
    yield +d
    yield +e
  }
  return p, q
}
# after
graph(X: K[M,K] = port, c: [M], G: K[K] = port, Y: K[N,K] = port, W: K[L,K] = port) {
  p, q = map K (x in !X, v = c, y in !Y, g in !G, w in !W) {
    s = row_scale(x, v)
    t1 = col_scale(y, g)
    d = dot(s, t1)
    t2 = col_scale(w, g)
    e = dot(s, t2)
    yield +d
    yield +e
  }
  return p, q
}
