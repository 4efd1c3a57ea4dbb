# Two operands of one rate leave together, though one is made of the other.
graph(x: M,K[M,K], c: M[M], w: N,K[N,K]) {
  y = map M (x_1 in !x, c_1 in !c, w_1 = !w) {
    z = map N (x_2 = !x_1, c_2 = c_1, w_2 in !w_1) {
      p = map K (a in !x_2, c_3 = c_2, b in !w_2) {
        s = row_scale(a, c_3)
        u = square(b)
        d = dot(s, u)
        t = s * s
        d_1 = dot(t, u)
        d_2 = d + d_1
        yield +d_2
      }
      yield p
    }
    yield z
  }
  return y
}
# after
graph(x: M,K[M,K], c: M[M], w: N,K[N,K]) {
  s, t = map M (x_1 in !x, c_1 in !c) {
    s_1, t_1 = map K (a in !x_1, c_2 = c_1) {
      s_2 = row_scale(a, c_2)
      t_2 = s_2 * s_2
      yield s_2
      yield t_2
    }
    yield s_1
    yield t_1
  }
  y = map M (w_1 = !w, s_3 in !s, t_3 in !t) {
    z = map N (w_2 in !w_1, s_4 = !s_3, t_4 = !t_3) {
      p = map K (b in !w_2, s_5 in !s_4, t_5 in !t_4) {
        u = square(b)
        d = dot(s_5, u)
        d_1 = dot(t_5, u)
        d_2 = d + d_1
        yield +d_2
      }
      yield p
    }
    yield z
  }
  return y
}
