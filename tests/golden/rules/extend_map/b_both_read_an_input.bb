# (b) LayerNorm: both maps over K read X, an input of this graph (in the whole program, X[m]).
graph(X: K[M,K] = port, YT: N,K[N,K]) {
  s = map K (x in !X) {
    t = row_sum(x)
    yield +t
  }
  O = map N (x2 = !X, y in !YT, s2 = s) {
    p = map K (a in !x2, b in !y) {
      d = dot(a, b)
      yield +d
    }
    z = row_scale(p, s2)
    yield z
  }
  return O
}
# after
graph(X: K[M,K] = port, YT: N,K[N,K]) {
  O = map N (X_1 = !X, y in !YT) {
    p = map K (a in !X_1, b in !y) {
      d = dot(a, b)
      yield +d
    }
    s = map K (x in !X_1) {
      t = row_sum(x)
      yield +t
    }
    z = row_scale(p, s)
    yield z
  }
  return O
}
