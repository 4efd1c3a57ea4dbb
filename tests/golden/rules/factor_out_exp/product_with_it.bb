# Not a sum: exp(x * c).
graph(X: K[M,K] = port, G: K[M,K] = port) {
  z = map K (x in !X) {
    t = row_max(x)
    yield max t
  }
  m = -z
  l = map K (x_1 in !X, c = m, g in !G) {
    u = row_scale(x_1, c)
    v = add(u, g)
    e = exp(v)
    a = row_sum(e)
    yield +a
  }
  return l
}
# because: c stays in K<row_scale add exp(x) row_sum>: no fold depends on it
