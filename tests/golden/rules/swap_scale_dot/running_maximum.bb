# The maximum is taken on the fly: it does not commute with the scale either.
graph(X: K[M,K] = port, c: [M], YT: N,K[N,K]) {
  S = map K (x in !X, v = c) {
    s = row_scale(x, v)
    yield s
  }
  O = map N (S2 = !S, y in !YT) {
    p = map K (a in !S2, b in !y) {
      d = dot(a, b)
      yield max d
    }
    yield p
  }
  return O
}
# because: N<K<dot>> is not a matmul: its body is more than a sum of dots
