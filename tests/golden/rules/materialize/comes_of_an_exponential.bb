# Its safe form has a running maximum.
graph(x: M,K[M,K]) {
  y = map M (x_1 in !x) {
    s = map K (a in !x_1) {
      e = exp(a)
      t = row_sum(e)
      yield +t
    }
    z = map K (a_1 in !x_1, s_1 = s) {
      e_1 = exp(a_1)
      u = row_scale(e_1, s_1)
      yield u
    }
    yield z
  }
  return y
}
# because: s comes of an exponential, whose sums go with a running maximum
