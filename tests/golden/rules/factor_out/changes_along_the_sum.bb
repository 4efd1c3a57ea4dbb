# A factor of the columns that are summed.
graph(X: K[M,K] = port, G: K[M,K] = port, Y: K[N,K] = port, F: K[N] = port) {
  s = map K (x in !X) {
    t = row_sum(x)
    yield +t
  }
  p, q = map K (x_1 in !X, c = s, g in !G, y in !Y, f in !F) {
    r = row_scale(x_1, c)
    t_1 = mul(r, g)
    d = dot(t_1, y)
    e = outer(f, c)
    u = row_sum(e)
    yield +d
    yield +u
  }
  return p, q
}
# because: c stays in K<row_scale mul dot outer row_sum>: u is not linear in it, because of a sum along M, along which it changes
