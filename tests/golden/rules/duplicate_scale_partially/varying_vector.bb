# The copy could not move: its vector changes with K.
graph(X: K[M,K] = port, c: K[M] = port, YT: N,K[N,K]) {
  S = map K (x in !X, v in !c) {
    s = row_scale(x, v)
    yield s
  }
  A = map N (S2 = !S, y in !YT) {
    p = map K (a in !S2, b in !y) {
      d = dot(a, b)
      yield +d
    }
    yield p
  }
  return A, S
}
# because: the vector of row_scale changes with K: it cannot be taken out of the sum
