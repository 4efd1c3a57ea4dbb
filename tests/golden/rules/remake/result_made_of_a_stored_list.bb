# The program returns the list, and it is made of another stored list, which others read.
graph(X: K[M,K] = port, Z: K[M,K] = port, g: K[K] = port) {
  E, q = map K (x in !X, z in !Z) {
    e = mul(x, z)
    u = row_sum(e)
    yield e
    yield +u
  }
  S, r = map K (e_1 in !E, h in !g, q_1 = q) {
    s = col_scale(e_1, h)
    f = row_scale(s, q_1)
    t = row_sum(f)
    yield s
    yield +t
  }
  Y = map K (s_1 in !S, r_1 = r) {
    y = row_scale(s_1, r_1)
    yield y
  }
  return Y, S
}
# because: each reader of E would read items of X and Z, all as large as its own
# because: S is a result, and what it is made of, E, is stored as well
