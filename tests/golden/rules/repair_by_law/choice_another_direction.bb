# The loops do not correspond: one of them goes down.
graph(X: N[M,N] = port, K: N[N] = port) {
  S, m = map N (x in !X) {
    s = scan + (x)
    m_1 = row_max(x)
    yield s
    yield max m_1
  }
  i = map N (x_1 in !X, m_2 = m) {
    b = scan back + (x_1)
    h = where(x_1 == m_2, b, 0) over [M,N]
    i_1 = row_sum(h)
    yield +i_1
  }
  return i, S
}
# because: scans go up N in one of them and down in the other
