# The maximum is not that of what is compared with it.
graph(X: N[M,N] = port, Y: N[M,N] = port) {
  m = map N (x in !X) {
    m_1 = row_max(x)
    yield max m_1
  }
  i = map N (y in !Y, m_2 = m, k in !X) {
    h = where(y == m_2, k, 0) over [M,N]
    i_1 = row_sum(h)
    yield +i_1
  }
  return i
}
# because: i cannot be repaired: it compares what the extremum is not of
# wrong
graph(X: N[M,N] = port, Y: N[M,N] = port) {
  m, i = map N (x in !X, y in !Y) {
    m_1 = row_max(x)
    h = where(y == m_1, x, 0) over [M,N]
    i_1 = row_sum(h)
    yield max t = m_1
    yield +i_1 by t: where(r == r2, x, 0)
  }
  return i
}
