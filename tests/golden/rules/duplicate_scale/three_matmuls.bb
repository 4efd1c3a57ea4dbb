# One application splits off the first matmul's copy; the other two still share theirs.
graph(X: K[M,K] = port, c: [M], YT: N,K[N,K], VT: L,K[L,K], WT: D,K[D,K]) {
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
  B = map L (S2_1 = !S, y_1 in !VT) {
    p_1 = map K (a_1 in !S2_1, b_1 in !y_1) {
      d_1 = dot(a_1, b_1)
      yield +d_1
    }
    yield p_1
  }
  C = map D (S2_2 = !S, y_2 in !WT) {
    p_2 = map K (a_2 in !S2_2, b_2 in !y_2) {
      d_2 = dot(a_2, b_2)
      yield +d_2
    }
    yield p_2
  }
  return A, B, C
}
# after
graph(X: K[M,K] = port, c: [M], YT: N,K[N,K], VT: L,K[L,K], WT: D,K[D,K]) {
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
  B = map L (S2_1 = !S_1, y_1 in !VT) {
    p_1 = map K (a_1 in !S2_1, b_1 in !y_1) {
      d_1 = dot(a_1, b_1)
      yield +d_1
    }
    yield p_1
  }
  C = map D (S2_2 = !S_1, y_2 in !WT) {
    p_2 = map K (a_2 in !S2_2, b_2 in !y_2) {
      d_2 = dot(a_2, b_2)
      yield +d_2
    }
    yield p_2
  }
  return A, B, C
}
