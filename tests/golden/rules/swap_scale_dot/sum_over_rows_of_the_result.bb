# The result is summed over N as it is made: not a map with one collected result.
graph(X: K[M,K] = port, c: [M], YT: H,K[N,K] = port) {
  S = map K (x in !X, v = c) {
    s = row_scale(x, v)
    yield s
  }
  O = map H (S2 = !S, y in !YT) {
    p = map K (a in !S2, b in !y) {
      d = dot(a, b)
      yield +d
    }
    yield +p
  }
  return O
}
# because: H<K<dot>> is not a matmul: not a map with one collected result
