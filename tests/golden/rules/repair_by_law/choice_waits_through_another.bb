# What depends on the maximum through another node is made again in the loop.
graph(X: N[M,N] = port, K: N[N] = port) {
  m = map N (x in !X) {
    m_1 = row_max(x)
    yield max m_1
  }
  b = tanh(m)
  i = map N (x_1 in !X, m_2 = m, b_1 = b, k in !K) {
    c = x_1 == m_2 over [M,N]
    y = b_1 + k over [M,N]
    h = where(c, y, inf)
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
    b = tanh(m_1)
    y = b + k over [M,N]
    h = where(c, y, inf)
    i_1 = row_min(h)
    yield max t = m_1
    yield min i_1 by t: where(r == r2, x, inf)
  }
  return i
}
