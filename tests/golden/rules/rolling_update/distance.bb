# No element is larger than the maximum, so the distance to it grows as that grows.
graph(X: N[M,N] = port) {
  m = map N (x in !X) {
    m_1 = row_max(x)
    yield max m_1
  }
  s = map N (x_1 in !X, c = m) {
    h = abs(x_1 - c) over [M,N]
    t = row_max(h)
    yield max t
  }
  return s
}
# after
graph(X: N[M,N] = port) {
  m, s = map N (x in !X) {
    m_1 = row_max(x)
    t1 = where(m_1 == -inf, 0, m_1)
    h = abs(x - t1) over [M,N]
    t = row_max(h)
    yield max t_1 = m_1
    yield max t by t_1: where(x == -inf, x, where(r2 == -inf, 0, r2) + x + -1 * where(r == -inf, 0, r))
  }
  t2 = m + s + -1 * where(m == -inf, 0, m)
  return t2
}
