# What depends on the maximum through another node is not there in the loop.
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
# because: i waits for b, which depends on the same loop
