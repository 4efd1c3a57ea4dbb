# The first position of the maximum.
graph(X: N[M,N] = port, K: N[N] = port) {
  m = map N (x in !X) {
    m_1 = row_max(x)
    yield max m_1
  }
  i = map N (x_1 in !X, m_2 = m, k in !K) {
    c = x_1 == m_2 over [M,N]
    h = where(c, k, inf) over [M,N]
    i_1 = row_min(h)
    yield min i_1
  }
  return i
}
# after
graph(X: N[M,N] = port, K: N[N] = port) {
  m, i = map N (x in !X, k in !K) {
    m_1 = row_max(x)
    c = x == m_1 over [M,N]
    h = where(c, k, inf) over [M,N]
    i_1 = row_min(h)
    yield max t = m_1
    yield min i_1 by t: where(r == r2, x, inf)
  }
  return i
}
