# Two maps that read nothing in common stay two.
graph(X: K[M,K] = port, G: K[M,K] = port, Z: K[M,K] = port) {
  s = map K (x in !Z) {
    t = row_sum(x)
    yield +t
  }
  p = map K (x_1 in !X, c = s, g in !G) {
    r = row_scale(x_1, c)
    t_1 = mul(r, g)
    a = row_sum(t_1)
    yield +a
  }
  return p
}
