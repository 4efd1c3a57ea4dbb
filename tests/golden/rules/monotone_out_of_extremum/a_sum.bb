# Sums are not moved.
graph(X: N[M,N] = port) {
  m = map N (x in !X) {
    a = abs(x)
    m_1 = row_max(a)
    yield max m_1
  }
  s = map N (x_1 in !X, c = m) {
    h = maximum(x_1 - c, 0) over [M,N]
    t = row_sum(h)
    yield +t
  }
  return s
}
