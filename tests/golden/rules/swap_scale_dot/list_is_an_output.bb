# The scaled list is a result of the program; leaving it unchanged would lose that.
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
    r = reduce + K (!p)
    yield r
  }
  return O, S
}
# because: S is a result of the program: it must still be computed
# wrong
graph(X: K[M,K] = port, c: [M], YT: N,K[N,K]) {
  O = map N (x2 = !X, y in !YT) {
    p = map K (a in !x2, b in !y) {
      d = dot(a, b)
      yield +d
    }
    yield p
  }
  Z = map N (o in !O, v = c) {
    z = row_scale(o, v)
    yield z
  }
  return Z, X
}
