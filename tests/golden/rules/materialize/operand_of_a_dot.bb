# Scaled squares of the rows do not depend on the columns: they are stored, and the loop of dots reads them.
graph(x: M,K[M,K], c: M[M], w: N,K[N,K]) {
  y = map M (x_1 in !x, c_1 in !c, w_1 = !w) {
    z = map N (x_2 = !x_1, c_2 = c_1, w_2 in !w_1) {
      p = map K (a in !x_2, c_3 = c_2, b in !w_2) {
        q = square(a)
        s = row_scale(q, c_3)
        d = dot(s, b)
        yield +d
      }
      yield p
    }
    yield z
  }
  return y
}
# after
graph(x: M,K[M,K], c: M[M], w: N,K[N,K]) {
  s = map M (x_1 in !x, c_1 in !c) {
    s_1 = map K (a in !x_1, c_2 = c_1) {
      q = square(a)
      s_2 = row_scale(q, c_2)
      yield s_2
    }
    yield s_1
  }
  y = map M (s_3 in !s, w_1 = !w) {
    z = map N (s_4 = !s_3, w_2 in !w_1) {
      p = map K (s_5 in !s_4, b in !w_2) {
        d = dot(s_5, b)
        yield +d
      }
      yield p
    }
    yield z
  }
  return y
}
