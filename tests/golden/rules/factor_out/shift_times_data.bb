# Digits that x - m keeps would cancel in the sums of x * g and m * g.
graph(X: K[M,K] = port, G: K[M,K] = port) {
  s = map K (x in !X) {
    t = row_sum(x)
    yield +t
  }
  p = map K (x_1 in !X, c = s, g in !G) {
    r = row_shift(x_1, c)
    t_1 = mul(r, g)
    a = row_sum(t_1)
    yield +a
  }
  return p
}
# because: c stays in K<row_shift mul row_sum>: a adds it, times data, to others: digits would cancel
