# A sum of two blocks, read in two loops: each loop would read two lists instead of one.
graph(X: K[M,K] = port, Z: K[M,K] = port) {
  S, r = map K (x in !X, z in !Z) {
    s = add(x, z)
    t = row_sum(s)
    yield s
    yield +t
  }
  Y = map K (s_1 in !S, r_1 = r) {
    y = row_scale(s_1, r_1)
    yield y
  }
  return Y
}
# because: each reader of S would read items of X and Z, all as large as its own
