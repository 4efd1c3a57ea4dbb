# A row in one piece: its sum is no fold over a list, and each block of columns takes it again.
graph(x: M[M,K] = port, v: N[N]) {
  y = map M (x_1 in !x, v_1 = !v) {
    z = map N (x_2 = x_1, v_2 in !v_1) {
      s = row_sum(x_2)
      u = s + v_2 over [M,N]
      yield u
    }
    yield z
  }
  return y
}
# after
graph(x: M[M,K] = port, v: N[N]) {
  s = map M (x_1 in !x) {
    s_1 = row_sum(x_1)
    yield s_1
  }
  y = map M (s_2 in !s, v_1 = !v) {
    z = map N (s_3 = s_2, v_2 in !v_1) {
      u = s_3 + v_2 over [M,N]
      yield u
    }
    yield z
  }
  return y
}
