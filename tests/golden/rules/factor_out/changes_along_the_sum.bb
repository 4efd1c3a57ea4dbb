# A factor of the columns that are summed.
graph(X: K[M,K] = port, F: K[N,M]) {
  s = map K (x in !X) {
    t = row_sum(x)
    yield +t
  }
  p = map K (f in !F, c = s) {
    e = col_scale(f, c)
    u = row_sum(e)
    yield +u
  }
  z = map K (f_1 in !F) {
    e_1 = row_max(f_1)
    yield max e_1
  }
  return p, z
}
# because: c stays in K<col_scale row_sum>: u is no multiple of it: a value is folded along M, along which it changes
