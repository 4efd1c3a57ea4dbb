# The largest of the negated elements is no magnitude: others may be larger without their sign.
graph(X: N[M,N] = port) {
  m = map N (x in !X) {
    a = -x
    m_1 = row_max(a)
    yield max m_1
  }
  c = reciprocal(m)
  s = map N (x_1 in !X, c_1 = c) {
    h = square(x_1 * c_1) over [M,N]
    t = row_sum(h)
    yield +t
  }
  return s
}
