# What is chosen by it is not linear in it.
graph(X: K[M,K] = port, G: K[M,K] = port) {
  s = map K (x in !X) {
    t = row_sum(x)
    yield +t
  }
  p = map K (x_1 in !X, c = s, g in !G) {
    r = row_scale(x_1, c)
    t_1 = mul(r, g)
    u = where(r, t_1, 0)
    a = row_sum(u)
    yield +a
  }
  return p
}
# because: c stays in K<row_scale mul where(x, y, 0) row_sum>: a is no multiple of it: a value takes where of elements and producers together
