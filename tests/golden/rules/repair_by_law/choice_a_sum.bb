# A sum is no extremum: elements that are equal to the sum of a block may not be to that of all.
graph(X: N[M,N] = port, K: N[N] = port) {
  m = map N (x in !X) {
    m_1 = row_sum(x)
    yield +m_1
  }
  i = map N (x_1 in !X, m_2 = m, k in !K) {
    h = where(x_1 == m_2, k, 0) over [M,N]
    i_1 = row_sum(h)
    yield +i_1
  }
  return i
}
# wrong
graph(X: N[M,N] = port, K: N[N] = port) {
  m, i = map N (x in !X, k in !K) {
    m_1 = row_sum(x)
    h = where(x == m_1, k, 0) over [M,N]
    i_1 = row_sum(h)
    yield +t = m_1
    yield +i_1 by t: where(r == r2, x, 0)
  }
  return i
}
