# Each element has an extremum of its own, and they are added up.
graph(X: N[M,K] = port, V: N[M,K] = port) {
  m = map N (x in !X) {
    yield max x
  }
  i = map N (x_1 in !X, m_1 = m, v in !V) {
    h = where(x_1 == m_1, v, 0)
    i_1 = row_sum(h)
    yield +i_1
  }
  return i
}
# because: i lacks an axis of m
