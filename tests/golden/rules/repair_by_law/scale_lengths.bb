# The squares of what is scaled by the magnitude of its row.
graph(X: N[M,N] = port) {
  m = map N (x in !X) {
    a = abs(x)
    m_1 = row_max(a)
    yield max m_1
  }
  c = reciprocal(m)
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
    t1 = maximum(m_1, 1e-30)
    c = reciprocal(t1)
    h = square(x * c) over [M,N]
    t = row_sum(h)
    yield max t_1 = m_1
    yield +t by t_1: x * square(maximum(r, 1e-30) / maximum(r2, 1e-30))
  }
  t2 = s * square(maximum(m, 1e-30) / m)
  return t2
}
