# A lower power of what the magnitude is of than of the scale.
graph(X: N[M,N] = port) {
  m = map N (x in !X) {
    a = abs(x)
    m_1 = row_max(a)
    yield max m_1
  }
  c = reciprocal(m)
  s = map N (x_1 in !X, c_1 = c) {
    h = x_1 * square(c_1) over [M,N]
    t = row_sum(h)
    yield +t
  }
  return s
}
# because: s scales something else than what the magnitude is of
