# One use is no matmul: its copy would stay.
graph(X: K[M,K] = port, c: [M], YT: N,K[N,K], VT: L,K[L,K]) {
  S = map K (x in !X, v = c) {
    s = row_scale(x, v)
    yield s
  }
  A = map N (S2 = !S, y in !YT) {
    p = map K (a in !S2, b in !y) {
      d = dot(a, b)
      yield +d
    }
    yield p
  }
  B = map K (s_1 in !S) {
    y_1 = s_1 * 2
    yield y_1
  }
  return A, B
}
# because: K<x * 2> is not a matmul: its body is more than a sum of dots
