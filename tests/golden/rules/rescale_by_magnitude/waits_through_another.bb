# The sum waits for another vector that is made of the magnitude.
graph(X: N[M,N] = port) {
  m = map N (x in !X) {
    a = abs(x)
    m_1 = row_max(a)
    yield max m_1
  }
  c = reciprocal(m)
  b = tanh(m)
  s = map N (x_1 in !X, c_1 = c, w = b) {
    h = square(x_1 * c_1) * w over [M,N]
    t = row_sum(h)
    yield +t
  }
  return s
}
# because: s waits for b, which depends on the same loop
# because: s waits for c, which depends on the same loop
