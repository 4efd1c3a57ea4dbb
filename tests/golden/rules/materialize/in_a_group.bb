# The sum is rescaled as the maximum of the same loop grows.
graph(x: M,K[M,K]) {
  y = map M (x_1 in !x) {
    m, s = map K (a in !x_1) {
      z = row_max(a)
      d = sub0(a, z) over [M,K]
      e = exp(d)
      t = row_sum(e)
      yield max t_1 = z
      yield +t by t_1: x * exp(sub0(r, r2))
    }
    z_1 = map K (a_1 in !x_1, s_1 = s) {
      u = row_scale(a_1, s_1)
      yield u
    }
    yield z_1
  }
  return y
}
# because: s is rescaled by a running maximum, which the same loop accumulates
