# Elements enter in two places.
graph(X: N[M,N] = port) {
  m = map N (x in !X) {
    a = abs(x)
    m_1 = row_max(a)
    yield max m_1
  }
  s = map N (x_1 in !X, c = m) {
    h = x_1 - square(x_1 * c) over [M,N]
    t = row_max(h)
    yield max t
  }
  return s
}
# because: s takes sub of several values that change
