# Sums of a weight's columns do not depend on the rows: their rate is that of the columns alone.
graph(x: M,K[M,K], w: N,K[N,K], c: M[M]) {
  y = map M (x_1 in !x, w_1 = !w, c_1 in !c) {
    z = map N (x_2 = !x_1, w_2 in !w_1, c_2 = c_1) {
      p, t = map K (a in !x_2, b in !w_2) {
        d = dot(a, b)
        t_1 = row_sum(b)
        yield +d
        yield +t_1
      }
      o = outer(c_2, t)
      v = add(o, p)
      yield v
    }
    yield z
  }
  return y
}
# after
graph(x: M,K[M,K], w: N,K[N,K], c: M[M]) {
  t = map N (w_1 in !w) {
    t_1 = map K (b in !w_1) {
      t_2 = row_sum(b)
      yield +t_2
    }
    yield t_1
  }
  y = map M (c_1 in !c, t_3 = !t, x_1 in !x, w_2 = !w) {
    z = map N (c_2 = c_1, t_4 in !t_3, x_2 = !x_1, w_3 in !w_2) {
      o = outer(c_2, t_4)
      p = map K (a in !x_2, b_1 in !w_3) {
        d = dot(a, b_1)
        yield +d
      }
      v = add(o, p)
      yield v
    }
    yield z
  }
  return y
}
