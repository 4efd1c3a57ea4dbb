# A sum reads the scaled list too.
graph(X: K[M,K] = port, c: [M], YT: N,K[N,K], R: K[M,K] = port) {
  S = map K (x in !X, v = c) {
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
  C = map K (s_1 in !S, r in !R) {
    z = add(s_1, r)
    yield z
  }
  return A, C
}
# after
graph(X: K[M,K] = port, c: [M], YT: N,K[N,K], R: K[M,K] = port) {
  S = map K (x in !X, v = c) {
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
  S_1 = map K (x_1 in !X, v_1 = c) {
    s_1 = row_scale(x_1, v_1)
    yield s_1
  }
  C = map K (s_2 in !S_1, r in !R) {
    z = add(s_2, r)
    yield z
  }
  return A, C
}
