# A factor that is an input is waited for by nobody.
graph(X: K[M,K] = port, G: K[M,K] = port, s: [M]) {
  p = map K (x in !X, c = s, g in !G) {
    r = row_scale(x, c)
    t = mul(r, g)
    a = row_sum(t)
    yield +a
  }
  z = map K (x_1 in !X) {
    t_1 = row_sum(x_1)
    yield +t_1
  }
  return p, z
}
