# A maximum of dots is not linear: a negative factor turns it round.
graph(X: K[M,K] = port, c: [M], YT: N,K[N,K]) {
  S = map K (x in !X, v = c) {
    s = row_scale(x, v)
    yield s
  }
  O = map N (S2 = !S, y in !YT) {
    p = map K (a in !S2, b in !y) {
      d = dot(a, b)
      yield d
    }
    r = reduce max K (!p)
    yield r
  }
  return O
}
# because: N<K<dot> reduce max K> is not a matmul: its body is more than a sum of dots
# wrong
graph(X: K[M,K] = port, c: [M], YT: N,K[N,K]) {
  O = map N (x2 = !X, y in !YT) {
    p = map K (a in !x2, b in !y) {
      d = dot(a, b)
      yield max d
    }
    yield p
  }
  Z = map N (o in !O, v = c) {
    z = row_scale(o, v)
    yield z
  }
  return Z
}
