# The program returns the list; the second loop reads the input again, and no longer waits for it.
graph(X: K[M,K] = port) {
  S, r = map K (x in !X) {
    s = x * 2
    t = row_sum(s)
    yield s
    yield +t
  }
  Y = map K (s_1 in !S, r_1 = r) {
    y = row_scale(s_1, r_1)
    yield y
  }
  return Y, S
}
# after
graph(X: K[M,K] = port) {
  S, r = map K (x in !X) {
    s = x * 2
    t = row_sum(s)
    yield s
    yield +t
  }
  Y = map K (x_1 in !X, r_1 = r) {
    s_1 = x_1 * 2
    y = row_scale(s_1, r_1)
    yield y
  }
  return Y, S
}
