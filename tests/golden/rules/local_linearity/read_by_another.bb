# Another operator reads the shifted block, and is not linear.
graph(X: K[M,K] = port, c: [M], Y: K[N,K] = port) {
  p = map K (x in !X, v = c, y in !Y) {
    s = row_shift(x, v)
    e = exp(s)
    d = dot(e, y)
    yield +d
  }
  return p
}
# because: s is read by exp(x), not by a dot alone
# wrong
graph(X: K[M,K] = port, c: [M], Y: K[N,K] = port) {
  p, r = map K (x in !X, y in !Y) {
    e = exp(x)
    d = dot(e, y)
    t = row_sum(y)
    yield +d
    yield +t
  }
  o = outer(c, r)
  z = add(o, p)
  return z
}
