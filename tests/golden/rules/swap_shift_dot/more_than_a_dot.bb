# The sum is of more than dots.
graph(X: K[M,K] = port, c: [M], YT: N,K[N,K]) {
  S = map K (x in !X, v = c) {
    s = row_shift(x, v)
    yield s
  }
  O = map N (S2 = !S, y in !YT) {
    p = map K (a in !S2, b in !y) {
      d = dot(a, b)
      e = square(d)
      yield +e
    }
    yield p
  }
  return O
}
# because: N<K<dot square(x)>> is not a matmul: its sum is not of dots alone
# wrong
graph(X: K[M,K] = port, c: [M], YT: N,K[N,K]) {
  Z = map N (x2 = !X, y in !YT, v = c) {
    p, t = map K (a in !x2, b in !y) {
      d0 = dot(a, b)
      d = square(d0)
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
