# Another result of the same loop is complete only after its last iteration.
graph(X: N[M,N] = port, K: N[N] = port) {
  m, s = map N (x in !X) {
    m_1 = row_max(x)
    s_1 = row_sum(x)
    yield max m_1
    yield +s_1
  }
  i = map N (x_1 in !X, m_2 = m, s_2 = s, k in !K) {
    c = x_1 == m_2 over [M,N]
    y = s_2 + k over [M,N]
    h = where(c, y, inf)
    i_1 = row_min(h)
    yield min i_1
  }
  return i
}
# because: i cannot be repaired: it waits for more than one extremum
# wrong
graph(X: N[M,N] = port, K: N[N] = port) {
  m, i = map N (x in !X, k in !K) {
    m_1 = row_max(x)
    c = x == m_1 over [M,N]
    s = row_sum(x)
    y = s + k over [M,N]
    h = where(c, y, inf)
    i_1 = row_min(h)
    yield max t = m_1
    yield min i_1 by t: where(r == r2, x, inf)
  }
  return i
}
