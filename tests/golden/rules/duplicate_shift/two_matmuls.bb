# Each matmul gets its own shift by minus the mean.
graph(X: K[M,K] = port, YT: N,K[N,K], VT: L,K[L,K]) {
  u, t = map K (x in !X) {
    q = square(x)
    b = row_sum(q)
    a = row_sum(x)
    yield +b
    yield +a
  }
  c = -(t / |K|)
  S = map K (x_1 in !X, v = c) {
    s = row_shift(x_1, v)
    yield s
  }
  O = map N (S2 = !S, y in !YT) {
    p = map K (a_1 in !S2, b_1 in !y) {
      d = dot(a_1, b_1)
      yield +d
    }
    yield p
  }
  B = map L (S2_1 = !S, y_1 in !VT) {
    p_1 = map K (a_2 in !S2_1, b_2 in !y_1) {
      d_1 = dot(a_2, b_2)
      yield +d_1
    }
    yield p_1
  }
  return O, B, u
}
# after
graph(X: K[M,K] = port, YT: N,K[N,K], VT: L,K[L,K]) {
  u, t = map K (x in !X) {
    q = square(x)
    b = row_sum(q)
    a = row_sum(x)
    yield +b
    yield +a
  }
  c = -(t / |K|)
  S = map K (x_1 in !X, v = c) {
    s = row_shift(x_1, v)
    yield s
  }
  O = map N (S2 = !S, y in !YT) {
    p = map K (a_1 in !S2, b_1 in !y) {
      d = dot(a_1, b_1)
      yield +d
    }
    yield p
  }
  S_1 = map K (x_2 in !X, v_1 = c) {
    s_1 = row_shift(x_2, v_1)
    yield s_1
  }
  B = map L (S2_1 = !S_1, y_1 in !VT) {
    p_1 = map K (a_2 in !S2_1, b_2 in !y_1) {
      d_1 = dot(a_2, b_2)
      yield +d_1
    }
    yield p_1
  }
  return O, B, u
}
