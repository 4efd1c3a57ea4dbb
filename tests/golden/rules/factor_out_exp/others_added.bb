# A sum with others.
graph(X: K[M,K] = port) {
  z = map K (x in !X) {
    t = row_max(x)
    yield max t
  }
  m = -z
  l = map K (x_1 in !X, c = m) {
    u = row_shift(x_1, c)
    e = exp(u)
    t_1 = e + 1
    a = row_sum(t_1)
    yield +a
  }
  return l
}
# because: c stays in K<row_shift exp(x) x + 1 row_sum>: a is no multiple of it: a value takes add of elements and producers together
