# The least absolute value bounds no other one.
graph(X: N[M,N] = port) {
  m = map N (x in !X) {
    a = abs(x)
    m_1 = row_min(a)
    yield min m_1
  }
  c = reciprocal(m)
  s = map N (x_1 in !X, c_1 = c) {
    h = square(x_1 * c_1) over [M,N]
    t = row_sum(h)
    yield +t
  }
  return s
}
