# The first iteration was peeled off.
graph(X: N[M,N] = port, K: N[N] = port) {
  m = map N (x in !X) {
    m_1 = row_max(x)
    yield max m_1
  }
  b = head N (!X)
  b_1 = row_sum(b)
  a = head N (!K)
  a_1 = row_sum(a)
  b_2 = b_1 * 0 + a_1 over [M]
  i = map N from 1 (x_1 in !X, m_2 = m, k in !K; b_2) {
    h = where(x_1 == m_2, k, 0) over [M,N]
    i_1 = row_sum(h)
    yield +i_1
  }
  return i
}
# because: the first iteration of i was peeled off
