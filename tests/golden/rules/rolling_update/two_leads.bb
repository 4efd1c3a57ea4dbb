# The repair reads two results of one loop.
graph(X: N[M,N] = port) {
  m, n = map N (x in !X) {
    a = abs(x)
    m_1 = row_max(a)
    n_1 = row_sum(a)
    yield max m_1
    yield +n_1
  }
  s = map N (x_1 in !X, c = m, d = n) {
    h = x_1 * c + x_1 * d over [M,N]
    t = row_sum(h)
    yield +t
  }
  return s
}
# after
graph(X: N[M,N] = port) {
  m, n, s = map N (x in !X) {
    a = abs(x)
    m_1 = row_max(a)
    n_1 = row_sum(a)
    t1 = where(m_1 == 0, 1, m_1)
    t2 = where(n_1 == 0, 1, n_1)
    h = x * t1 + x * t2 over [M,N]
    t = row_sum(h)
    yield max t_1 = m_1
    yield +t_2 = n_1
    yield +t by t_1, t_2: where(x == 0, x, x * reciprocal(where(r == 0, 1, r) + where(s == 0, 1, s)) * (where(r2 == 0, 1, r2) + where(s2 == 0, 1, s2)))
  }
  t3 = s * reciprocal(where(m == 0, 1, m) + where(n == 0, 1, n)) * (m + n)
  return t3
}
