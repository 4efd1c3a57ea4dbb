# A scale that is there before the loop of the magnitude: the two maps are siblings.
graph(X: N[M,N] = port, b: [M]) {
  c = reciprocal(b)
  s = map N (x in !X, c_1 = c) {
    h = square(x * c_1) over [M,N]
    t = row_sum(h)
    yield +t
  }
  m = map N (x_1 in !X) {
    a = abs(x_1)
    m_1 = row_max(a)
    yield max m_1
  }
  return s, m
}
