# A decoder block: the scaled rows are the left operand for Q and K, but the right one for V^T.
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
  B = map L (w in !VT, S2_1 = !S) {
    p_1 = map K (a_1 in !w, b_1 in !S2_1) {
      d_1 = dot(a_1, b_1)
      yield +d_1
    }
    yield p_1
  }
  return A, B
}
# because: L<K<dot>> takes the whole row as the right operand of its dot
