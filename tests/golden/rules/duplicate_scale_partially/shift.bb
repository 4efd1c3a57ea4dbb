# Likewise for a shift.
graph(X: K[M,K] = port, c: [M], YT: N,K[N,K], VT: L,K[L,K]) {
  S = map K (x in !X, v = c) {
    s = row_shift(x, v)
    yield s
  }
  A = map N (S2 = !S, y in !YT) {
    p = map K (a in !S2, b in !y) {
      d = dot(a, b)
      yield +d
    }
    yield p
  }
  B = map L (S2_1 = !S, y_1 in !VT) {
    p_1 = map K (a_1 in !S2_1, b_1 in !y_1) {
      d_1 = dot(a_1, b_1)
      yield +d_1
    }
    yield p_1
  }
  return A, B, S
}
# after
graph(X: K[M,K] = port, c: [M], YT: N,K[N,K], VT: L,K[L,K]) {
  S = map K (x in !X, v = c) {
    s = row_shift(x, v)
    yield s
  }
  A = map N (S2 = !S, y in !YT) {
    p = map K (a in !S2, b in !y) {
      d = dot(a, b)
      yield +d
    }
    yield p
  }
  B = map L (S2_1 = !S, y_1 in !VT) {
    p_1 = map K (a_1 in !S2_1, b_1 in !y_1) {
      d_1 = dot(a_1, b_1)
      yield +d_1
    }
    yield p_1
  }
  S_1 = map K (x_1 in !X, v_1 = c) {
    s_1 = row_shift(x_1, v_1)
    yield s_1
  }
  return A, B, S_1
}
