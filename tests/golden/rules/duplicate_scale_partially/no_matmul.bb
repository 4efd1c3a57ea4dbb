# No reader is a matmul.
graph(X: K[M,K] = port, c: [M]) {
  S = map K (x in !X, v = c) {
    s = row_scale(x, v)
    yield s
  }
  C = map K (s_1 in !S) {
    e = exp(s_1)
    yield e
  }
  return C, S
}
# because: no reader of S is a matmul with it on the left
