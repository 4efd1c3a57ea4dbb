# V^T in self-attention: the shifted rows are the right operand, so the vector belongs to its columns.
graph(X: K[M,K] = port, c: [M], WT: L,K[L,K]) {
  S = map K (x in !X, v = c) {
    s = row_shift(x, v)
    yield s
  }
  O = map L (w in !WT, S2 = !S) {
    p = map K (a in !w, b in !S2) {
      d = dot(a, b)
      yield +d
    }
    yield p
  }
  return O
}
# because: L<K<dot>> takes the whole row as the right operand of its dot
