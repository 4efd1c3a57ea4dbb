# No rule knows this normalizer: its repair is solved for.
graph(X: N[M,N] = port) {
  m = map N (x in !X) {
    a = abs(x)
    m_1 = row_max(a)
    yield max m_1
  }
  c = reciprocal(m + 1)
  s = map N (x_1 in !X, c_1 = c) {
    h = square(x_1 * c_1) over [M,N]
    t = row_sum(h)
    yield +t
  }
  return s
}
# after
graph(X: N[M,N] = port) {
  m, s = map N (x in !X) {
    a = abs(x)
    m_1 = row_max(a)
    c = reciprocal(m_1 + 1)
    h = square(x * c) over [M,N]
    t = row_sum(h)
    yield max t_1 = m_1
    yield +t by t_1: x * square((maximum(r, 0) + 1) / (maximum(r2, 0) + 1))
  }
  return s
}
