# The sum waits for the magnitude itself, too.
graph(X: N[M,N] = port) {
  m = map N (x in !X) {
    a = abs(x)
    m_1 = row_max(a)
    yield max m_1
  }
  c = reciprocal(m)
  s = map N (x_1 in !X, c_1 = c, w = m) {
    h = square(x_1 * c_1) * w over [M,N]
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
    h = square(x * c) * t1 over [M,N]
    t = row_sum(h)
    yield max t_1 = m_1
    yield +t by t_1: x * (maximum(r, 1e-30) / maximum(r2, 1e-30))
  }
  t2 = s * (maximum(m, 1e-30) / m)
  return t2
}
