# A reader is no matmul.
graph(X: K[M,K] = port, c: [M], YT: N,K[N,K], VT: L,K[L,K]) {
  S = map K (x in !X, v = c) {
    s = row_shift(x, v)
    yield s
  }
  A = map N (S2 = !S, y in !YT) {
    p = map K (a in !S2, b in !y) {
      d = dot(a, b)
      yield +d
    }
    yield p
  }
  B = map L (S2_1 = !S, y_1 in !VT) {
    p_1 = map K (a_1 in !S2_1, b_1 in !y_1) {
      d_1 = dot(a_1, b_1)
      yield +d_1
    }
    yield p_1
  }
  C = map K (s_1 in !S) {
    e = exp(s_1)
    yield e
  }
  return A, B, C
}
# because: K<exp(x)> is not a matmul: its body is more than a sum of dots
