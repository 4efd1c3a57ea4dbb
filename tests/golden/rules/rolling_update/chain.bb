# A lead may itself be repaired for its own.
graph(X: N[M,N] = port) {
  m, n = map N (x in !X) {
    a = abs(x)
    m_1 = row_max(a)
    h = square(x / (m_1 + 1)) over [M,N]
    n_1 = row_sum(h)
    yield max t = m_1
    yield +n_1 by t: x * ((r + 1) / (r2 + 1)) ** 2
  }
  s = map N (x_1 in !X, d = n) {
    h_1 = x_1 * (square(d) + 1) over [M,N]
    t_1 = row_sum(h_1)
    yield +t_1
  }
  return s, m
}
# after
graph(X: N[M,N] = port) {
  m, n, s = map N (x in !X) {
    a = abs(x)
    m_1 = row_max(a)
    h = square(x / (m_1 + 1)) over [M,N]
    n_1 = row_sum(h)
    h_1 = x * (square(n_1) + 1) over [M,N]
    t = row_sum(h_1)
    yield max t_1 = m_1
    yield +t_2 = n_1 by t_1: x * ((r + 1) / (r2 + 1)) ** 2
    yield +t by t_2: where(x == 0, x, x * ((square(r2) + 1) / (square(r) + 1)))
  }
  return s, m
}
