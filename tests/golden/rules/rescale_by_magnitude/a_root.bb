# The root of what is negative is NaN before and after: the magnitude has no sign.
graph(X: N[M,N] = port) {
  m = map N (x in !X) {
    a = abs(x)
    m_1 = row_max(a)
    yield max m_1
  }
  c = -1 / m
  s = map N (x_1 in !X, c_1 = c) {
    h = sqrt(x_1 * c_1) over [M,N]
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
    c = -1 / t1
    h = sqrt(x * c) over [M,N]
    t = row_sum(h)
    yield max t_1 = m_1
    yield +t by t_1: x * (sqrt(maximum(r, 1e-30)) / sqrt(maximum(r2, 1e-30)))
  }
  t2 = s * (sqrt(maximum(m, 1e-30)) / sqrt(m))
  return t2
}
