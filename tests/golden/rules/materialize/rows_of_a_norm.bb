# Fused RMSNorm and matmul: the squares of a row are summed once, not for each block of columns.
graph(x: M,K[M,K], w: N,K[N,K]) {
  y = map M (x_1 in !x, w_1 = !w) {
    z = map N (x_2 = !x_1, w_2 in !w_1) {
      p, s = map K (a in !x_2, b in !w_2) {
        d = dot(a, b)
        q = square(a)
        t = row_sum(q)
        yield +d
        yield +t
      }
      r = rsqrt(s * (1 / |K|) + 1e-06)
      u = row_scale(p, r)
      yield u
    }
    yield z
  }
  return y
}
# after
graph(x: M,K[M,K], w: N,K[N,K]) {
  r = map M (x_1 in !x) {
    s = map K (a in !x_1) {
      q = square(a)
      t = row_sum(q)
      yield +t
    }
    r_1 = rsqrt(s * (1 / |K|) + 1e-06)
    yield r_1
  }
  y = map M (x_2 in !x, w_1 = !w, r_2 in !r) {
    z = map N (x_3 = !x_2, w_2 in !w_1, r_3 = r_2) {
      p = map K (a_1 in !x_3, b in !w_2) {
        d = dot(a_1, b)
        yield +d
      }
      u = row_scale(p, r_3)
      yield u
    }
    yield z
  }
  return y
}
