# LayerNorm and matmul: the mean and the deviation of the rows leave together; the columns stay.
graph(x: M,K[M,K], w: N,K[N,K]) {
  y = map M (x_1 in !x, w_1 = !w) {
    z = map N (x_2 = !x_1, w_2 in !w_1) {
      p, s, t, s_1 = map K (a in !x_2, b in !w_2) {
        d = dot(a, b)
        q = square(a)
        s_2 = row_sum(q)
        t_1 = row_sum(b)
        s_3 = row_sum(a)
        yield +d
        yield +s_2
        yield +t_1
        yield +s_3
      }
      c = -(s_1 * (1 / |K|))
      o = outer(c, t)
      v = add(o, p)
      r = rsqrt(maximum(s * (1 / |K|) - square(c), 0) + 1e-05)
      u = row_scale(v, r)
      yield u
    }
    yield z
  }
  return y
}
# after
graph(x: M,K[M,K], w: N,K[N,K]) {
  c, r = map M (x_1 in !x) {
    s, s_1 = map K (a in !x_1) {
      q = square(a)
      s_2 = row_sum(q)
      s_3 = row_sum(a)
      yield +s_2
      yield +s_3
    }
    c_1 = -(s_1 * (1 / |K|))
    r_1 = rsqrt(maximum(s * (1 / |K|) - square(c_1), 0) + 1e-05)
    yield c_1
    yield r_1
  }
  y = map M (x_2 in !x, w_1 = !w, c_2 in !c, r_2 in !r) {
    z = map N (x_3 = !x_2, w_2 in !w_1, c_3 = c_2, r_3 = r_2) {
      p, t = map K (a_1 in !x_3, b in !w_2) {
        d = dot(a_1, b)
        t_1 = row_sum(b)
        yield +d
        yield +t_1
      }
      o = outer(c_3, t)
      v = add(o, p)
      u = row_scale(v, r_3)
      yield u
    }
    yield z
  }
  return y
}
