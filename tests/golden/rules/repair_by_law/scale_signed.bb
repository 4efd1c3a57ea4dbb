# The scale has the sign of another vector: its odd power keeps it, its absolute value loses it.
graph(X: N[M,N] = port, b: [M]) {
  m = map N (x in !X) {
    a = abs(x)
    m_1 = row_max(a)
    yield max m_1
  }
  c = b / m over [M]
  s = map N (x_1 in !X, c_1 = c) {
    h = x_1 * c_1 * abs(x_1 * c_1) over [M,N]
    t = row_sum(h)
    yield +t
  }
  return s
}
# after
graph(X: N[M,N] = port, b: [M]) {
  m, s = map N (x in !X, b_1 = b) {
    a = abs(x)
    m_1 = row_max(a)
    t1 = maximum(m_1, 1e-30)
    c = b_1 / t1 over [M]
    h = x * c * abs(x * c) over [M,N]
    t = row_sum(h)
    yield max t_1 = m_1
    yield +t by t_1: x * square(maximum(r, 1e-30) / maximum(r2, 1e-30))
  }
  t2 = s * square(maximum(m, 1e-30) / m)
  return t2
}
