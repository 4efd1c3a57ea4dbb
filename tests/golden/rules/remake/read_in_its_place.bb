# A stored list is read in the place of another, which goes.
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
  return Y
}
# after
graph(X: K[M,K] = port, Z: K[M,K] = port, g: K[K] = port) {
  E, q = map K (x in !X, z in !Z) {
    e = mul(x, z)
    u = row_sum(e)
    yield e
    yield +u
  }
  r = map K (e_1 in !E, h in !g, q_1 = q) {
    s = col_scale(e_1, h)
    f = row_scale(s, q_1)
    t = row_sum(f)
    yield +t
  }
  Y = map K (e_2 in !E, h_1 in !g, r_1 = r) {
    s_1 = col_scale(e_2, h_1)
    y = row_scale(s_1, r_1)
    yield y
  }
  return Y
}
