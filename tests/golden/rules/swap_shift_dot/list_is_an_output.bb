# The shifted list is a result of the program; leaving it unchanged would lose that.
graph(X: K[M,K] = port, c: [M], YT: N,K[N,K]) {
  S = map K (x in !X, v = c) {
    s = row_shift(x, v)
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
  Z = map N (x2 = !X, y in !YT, v = c) {
    p, t = map K (a in !x2, b in !y) {
      d = dot(a, b)
      q = row_sum(b)
      yield +d
      yield +q
    }
    f = outer(v, t)
    z = add(f, p)
    yield z
  }
  return Z, X
}
