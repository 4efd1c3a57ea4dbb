# The repair reads two results of one loop.
graph(X: N[M,N] = port) {
  m, n = map N (x in !X) {
    a = square(x)
    m_1 = row_sum(a)
    b = square(a)
    n_1 = row_sum(b)
    yield +m_1
    yield +n_1
  }
  s = map N (x_1 in !X, c = m, d = n) {
    h = x_1 * (c + 1) + x_1 * d over [M,N]
    t = row_sum(h)
    yield +t
  }
  return s
}
# after
graph(X: N[M,N] = port) {
  m, n, s = map N (x in !X) {
    a = square(x)
    m_1 = row_sum(a)
    b = square(a)
    n_1 = row_sum(b)
    h = x * (m_1 + 1) + x * n_1 over [M,N]
    t = row_sum(h)
    yield +t_1 = m_1
    yield +t_2 = n_1
    yield +t by t_1, t_2: x * reciprocal(1 + r + s) * (1 + r2 + s2)
  }
  return s
}
