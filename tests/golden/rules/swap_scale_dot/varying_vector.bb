# The vector changes along the sum: no factor is common to its terms.
graph(X: K[M,K] = port, C: K[M] = port, YT: N,K[N,K]) {
  S = map K (x in !X, v in !C) {
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
  return O
}
# because: the vector of row_scale changes with K: it cannot be taken out of the sum
# wrong
graph(X: K[M,K] = port, C: K[M] = port, YT: N,K[N,K]) {
  O = map N (x2 = !X, y in !YT) {
    p = map K (a in !x2, b in !y) {
      d = dot(a, b)
      yield +d
    }
    yield p
  }
  w = reduce + K (!C)
  Z = map N (o in !O, v = w) {
    z = row_scale(o, v)
    yield z
  }
  return Z
}
