# The matmul after fuse-reduction: the dots are accumulated.
graph(X: K[M,K] = port, c: [M], YT: N,K[N,K]) {
  S = map K (x in !X, v = c) {
    s = row_scale(x, v)
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
# after
graph(X: K[M,K] = port, c: [M], YT: N,K[N,K]) {
  t1 = map N (S2 = !X, y in !YT) {
    p = map K (a in !S2, b in !y) {
      d = dot(a, b)
      yield +d
    }
    yield p
  }
  O = map N (t1_1 in !t1, c_1 = c) {
    t2 = row_scale(t1_1, c_1)
    yield t2
  }
  return O
}
