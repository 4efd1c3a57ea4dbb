# The reader is a map of something else.
graph(X: K[M,K] = port, c: [M]) {
  S = map K (x in !X, v = c) {
    s = row_scale(x, v)
    yield s
  }
  O = map K (s_1 in !S) {
    y = s_1 * 2
    yield y
  }
  return O
}
# because: K<x * 2> is not a matmul: its body is more than a sum of dots
