# Every entry of the list is the same block: there is no list to read instead of it.
graph(X: [M,H], c: [M], YT: N,K[N,H] = port) {
  S = map K (x = X, v = c) {
    s = row_shift(x, v)
    yield s
  }
  O = map N (S2 = !S, y in !YT) {
    p = map K (a in !S2, b in !y) {
      d = dot(a, b)
      yield +d
    }
    yield p
  }
  return O
}
# because: the block of row_shift does not change with K
