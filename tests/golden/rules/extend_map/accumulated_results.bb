# A map with accumulated results is extended like any other (SwiGLU step 25).
graph(X: D[M,D] = port, WT: K,D[K,D], UT: K[N,K] = port) {
  s = map D (x in !X) {
    t = row_sum(x)
    yield +t
  }
  O = map K (x2 = !X, w in !WT, s2 = s, u in !UT) {
    p = map D (a in !x2, b in !w) {
      d = dot(a, b)
      yield +d
    }
    q = row_scale(p, s2)
    z = dot(q, u)
    yield +z
  }
  return O
}
# after
graph(X: D[M,D] = port, WT: K,D[K,D], UT: K[N,K] = port) {
  O = map K (X_1 = !X, w in !WT, u in !UT) {
    p = map D (a in !X_1, b in !w) {
      d = dot(a, b)
      yield +d
    }
    s = map D (x in !X_1) {
      t = row_sum(x)
      yield +t
    }
    q = row_scale(p, s)
    z = dot(q, u)
    yield +z
  }
  return O
}
