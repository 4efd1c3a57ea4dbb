# A difference of positive numbers may have both signs.
graph(X: K[M,K] = port, G: K[M,K] = port) {
  s = map K (x in !X) {
    t = row_sum(x)
    yield +t
  }
  p = map K (x_1 in !X, c = s, g in !G) {
    r = row_shift(x_1, c)
    e = exp(g)
    f = exp(x_1)
    h = sub(e, f)
    u = mul(r, h)
    a = row_sum(u)
    yield +a
  }
  return p
}
# because: c stays in K<row_shift exp(x) exp(x) sub mul row_sum>: a adds it to others, times what may have both signs: digits would cancel
