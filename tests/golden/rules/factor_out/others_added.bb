# Digits that a sum of both keeps would cancel in their difference.
graph(X: K[M,K] = port, G: K[M,K] = port) {
  s = map K (x in !X) {
    t = row_sum(x)
    yield +t
  }
  p = map K (x_1 in !X, c = s, g in !G) {
    r = row_scale(x_1, c)
    t_1 = add(r, g)
    a = row_sum(t_1)
    yield +a
  }
  return p
}
# because: c stays in K<row_scale add row_sum>: a is no multiple of it: a value takes add of elements and producers together
