# What is added where x is less than the maximum is added again for each block.
graph(X: N[M,N] = port, K: N[N] = port) {
  m = map N (x in !X) {
    m_1 = row_max(x)
    yield max m_1
  }
  i = map N (x_1 in !X, m_2 = m, k in !K) {
    h = where(x_1 == m_2, k, 1) over [M,N]
    i_1 = row_sum(h)
    yield +i_1
  }
  return i
}
# because: i cannot be repaired: it is not 0 where it is not at the extremum
# wrong
graph(X: N[M,N] = port, K: N[N] = port) {
  m, i = map N (x in !X, k in !K) {
    m_1 = row_max(x)
    h = where(x == m_1, k, 1) over [M,N]
    i_1 = row_sum(h)
    yield max t = m_1
    yield +i_1 by t: where(r == r2, x, 1)
  }
  return i
}
