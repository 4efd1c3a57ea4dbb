# fuse-maps would make a cycle: the second loop also reads the sum of the first.
graph(X: K[M,K] = port, g: K[K] = port) {
  S, r = map K (x in !X, h in !g) {
    s = col_scale(x, h)
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
# after
graph(X: K[M,K] = port, g: K[K] = port) {
  r = map K (x in !X, h in !g) {
    s = col_scale(x, h)
    t = row_sum(s)
    yield +t
  }
  Y = map K (x_1 in !X, h_1 in !g, r_1 = r) {
    s_1 = col_scale(x_1, h_1)
    y = row_scale(s_1, r_1)
    yield y
  }
  return Y
}
