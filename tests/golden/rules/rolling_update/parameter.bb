# A number per row that the repair reads is folded beside the leads.
graph(X: N[M,N] = port, P: [M]) {
  m = map N (x in !X) {
    a = x + 0
    m_1 = row_max(a)
    yield max m_1
  }
  s = map N (x_1 in !X, c = m, p = P) {
    h = exp((x_1 - c) / p) over [M,N]
    t = row_sum(h)
    yield +t
  }
  return s
}
# after
graph(X: N[M,N] = port, P: [M]) {
  m, t1, s = map N (x in !X, P_1 = P) {
    a = x + 0
    m_1 = row_max(a)
    t2 = where(m_1 == -inf, 0, m_1)
    h = exp((x - t2) / P_1) over [M,N]
    t = row_sum(h)
    yield max t_1 = m_1
    yield max t_2 = P_1
    yield +t by t_1, t_2: where(x == 0, x, x * exp(where(r == -inf, 0, r) / s2 - where(r2 == -inf, 0, r2) / s2))
  }
  t3 = s * exp(where(m == -inf, 0, m) / P - m / P)
  return t3
}
