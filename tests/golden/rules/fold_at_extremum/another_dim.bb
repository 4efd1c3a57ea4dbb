# The loops do not correspond.
graph(X: N[M,N] = port, Y: L[M,L] = port) {
  m = map N (x in !X) {
    m_1 = row_max(x)
    yield max m_1
  }
  i = map L (y in !Y, m_2 = m) {
    h = where(y == m_2, y, 0) over [M,L]
    i_1 = row_sum(h)
    yield +i_1
  }
  return i
}
# because: m runs over N and i over L
