# A lead may itself be repaired for its own.
graph(X: N[M,N] = port) {
  m, n = map N (x in !X) {
    a = abs(x)
    m_1 = row_max(a)
    h = square(x / (m_1 + 1)) over [M,N]
    n_1 = row_sum(h)
    yield max q = m_1
    yield +n_1 by q: x * ((r + 1) / (r2 + 1)) ** 2
  }
  s = map N (x_1 in !X, d = n) {
    h = x_1 * (square(d) + 1) over [M,N]
    t = row_sum(h)
    yield +t
  }
  return s, m
}
