# The vector changes along the sum: no factor is common to its terms.
graph(X: K[M,K] = port, C: K[M] = port, YT: N,K[N,K]) {
  S = map K (x in !X, v in !C) {
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
  return O
}
# because: the vector of row_shift changes with K: it cannot be taken out of the sum
# wrong
graph(X: K[M,K] = port, C: K[M] = port, YT: N,K[N,K]) {
  w = reduce + K (!C)
  Z = map N (x2 = !X, y in !YT, v = w) {
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
  return Z
}
