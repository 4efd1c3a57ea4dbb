# Rule 8 gives each matmul its own copy.
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
  B = map L (S2_1 = !S, y_1 in !VT) {
    p_1 = map K (a_1 in !S2_1, b_1 in !y_1) {
      d_1 = dot(a_1, b_1)
      yield +d_1
    }
    yield p_1
  }
  return A, B
}
# because: only matmuls read S: each may have a copy of its own
