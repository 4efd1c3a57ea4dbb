# The loops do not correspond: one of them goes down.
graph(X: N[M,N] = port) {
  S, m = map N (x in !X) {
    s = scan + (x)
    a = abs(x)
    m_1 = row_max(a)
    yield s
    yield max m_1
  }
  t = map N (x_1 in !X, m_2 = m) {
    b = scan back + (x_1)
    h = b / (m_2 + 1) over [M,N]
    t_1 = row_sum(h)
    yield +t_1
  }
  return t, S
}
# because: scans go up N in one of them and down in the other
