# Blocks of what is added stay blocks, one row under each maximum.
graph(X: N[M,K] = port, V: N[M,K] = port) {
  m = map N (x in !X) {
    m_1 = row_max(x)
    yield max m_1
  }
  i = map N (x_1 in !X, m_2 = m, v in !V) {
    h = where(x_1 == m_2, v, 0) over [M,K]
    yield +h
  }
  return i
}
# after
graph(X: N[M,K] = port, V: N[M,K] = port) {
  m, i = map N (x in !X, v in !V) {
    m_1 = row_max(x)
    h = where(x == m_1, v, 0) over [M,K]
    yield max t = m_1
    yield +h by t: where(r == r2, x, 0)
  }
  return i
}
