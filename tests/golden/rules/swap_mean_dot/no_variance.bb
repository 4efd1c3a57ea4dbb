# Nothing centers the row: no sum of its squares is taken.
graph(X: K[M,K] = port, YT: N,K[N,K]) {
  t = map K (x in !X) {
    a = row_sum(x)
    yield +a
  }
  c = -(t / |K|)
  S = map K (x_1 in !X, v = c) {
    s = row_shift(x_1, v)
    yield s
  }
  O = map N (S2 = !S, y in !YT) {
    p = map K (a_1 in !S2, b in !y) {
      d = dot(a_1, b)
      yield +d
    }
    yield p
  }
  return O
}
# because: the shift is not minus the mean of a row whose variance is taken: behind the product, digits would cancel where the shift is large
