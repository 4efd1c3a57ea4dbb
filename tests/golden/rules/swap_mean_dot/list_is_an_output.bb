# The conditions of rule 5 hold as well: the shifted list is a result.
graph(X: K[M,K] = port, YT: N,K[N,K]) {
  u, t = map K (x in !X) {
    q = square(x)
    b = row_sum(q)
    a = row_sum(x)
    yield +b
    yield +a
  }
  c = -(t / |K|)
  S = map K (x_1 in !X, v = c) {
    s = row_shift(x_1, v)
    yield s
  }
  O = map N (S2 = !S, y in !YT) {
    p = map K (a_1 in !S2, b_1 in !y) {
      d = dot(a_1, b_1)
      yield +d
    }
    yield p
  }
  return O, u, S
}
# because: S is a result of the program: it must still be computed
