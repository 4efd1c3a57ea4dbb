# What is scaled is not what the magnitude is of: its scaled values could overflow.
graph(X: N[M,N] = port, Y: N[M,N] = port) {
  m = map N (x in !X) {
    a = abs(x)
    m_1 = row_max(a)
    yield max m_1
  }
  c = reciprocal(m)
  s = map N (x_1 in !X, y in !Y, c_1 = c) {
    h = x_1 * square(y * c_1) over [M,N]
    t = row_sum(h)
    yield +t
  }
  return s
}
# because: s scales something else than what the magnitude is of
