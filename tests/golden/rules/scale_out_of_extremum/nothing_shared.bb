# No other loop reads what this one reads: nothing is saved.
graph(X: N[M,N] = port, Y: N[M,N] = port) {
  s = map N (y in !Y) {
    q = square(y)
    s_1 = row_sum(q)
    yield +s_1
  }
  z = map N (x in !X, r = s) {
    y_1 = row_scale(x, r)
    z_1 = row_max(y_1)
    yield max z_1
  }
  return z
}
