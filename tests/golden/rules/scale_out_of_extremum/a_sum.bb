# A sum is for other rules.
graph(X: N[M,N] = port) {
  s = map N (x in !X) {
    q = square(x)
    s_1 = row_sum(q)
    yield +s_1
  }
  z = map N (x_1 in !X, r = s) {
    y = row_scale(x_1, r)
    z_1 = row_sum(y)
    yield +z_1
  }
  return z
}
