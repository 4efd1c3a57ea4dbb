# Sums are not moved.
graph(X: N[M,N] = port) {
  m = map N (x in !X) {
    a = abs(x)
    m_1 = row_max(a)
    yield max m_1
  }
  s = map N (x_1 in !X, c = m) {
    h = tanh(x_1 - c) over [M,N]
    t = row_sum(h)
    yield +t
  }
  return s
}
