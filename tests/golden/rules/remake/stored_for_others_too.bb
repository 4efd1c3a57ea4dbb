# The program returns the list; without it, another stored list would be read.
graph(X: K[M,K] = port, g: K[K] = port) {
  E, q = map K (x in !X) {
    e = exp(x)
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
# because: E holds an exponential, whose safe form is a pair
# because: S is stored for others too: it would be made of E, which is stored as well
