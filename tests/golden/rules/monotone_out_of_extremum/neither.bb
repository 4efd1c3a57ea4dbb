# A square neither rises nor falls.
graph(X: N[M,N] = port) {
  m = map N (x in !X) {
    a = abs(x)
    m_1 = row_max(a)
    yield max m_1
  }
  s = map N (x_1 in !X, c = m) {
    h = square(x_1 - c) over [M,N]
    t = row_max(h)
    yield max t
  }
  return s
}
# because: s is not known to rise or to fall: it takes square
