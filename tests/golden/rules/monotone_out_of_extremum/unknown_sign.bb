# A factor of unknown sign may turn the order round.
graph(X: N[M,N] = port) {
  m = map N (x in !X) {
    a = x + 0
    m_1 = row_max(a)
    yield max m_1
  }
  s = map N (x_1 in !X, c = m) {
    h = row_scale(x_1, c)
    t = row_max(h)
    yield max t
  }
  return s
}
# because: s is not known to rise or to fall: it takes mul
