# The mean along another dim of the same size.
graph(X: K[M,K] = port, Z: K'[M,K'] = port, YT: N,K[N,K]) {
  t = map K' (z in !Z) {
    a = row_sum(z)
    yield +a
  }
  c = -(t / |K|)
  S = map K (x in !X, v = c) {
    s = row_shift(x, v)
    yield s
  }
  O = map N (S2 = !S, y in !YT) {
    p = map K (a_1 in !S2, b in !y) {
      d = dot(a_1, b)
      yield +d
    }
    yield p
  }
  u, l = map K (x_1 in !X) {
    q = square(x_1)
    b_1 = row_sum(q)
    e = row_sum(x_1)
    yield +b_1
    yield +e
  }
  return O, u, l
}
# because: the shift is not minus the mean of a row whose variance is taken: behind the product, digits would cancel where the shift is large
