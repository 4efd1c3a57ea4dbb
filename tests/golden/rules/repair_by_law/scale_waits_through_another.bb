# The sum waits for another vector that is made of the magnitude.
graph(X: N[M,N] = port) {
  m = map N (x in !X) {
    a = abs(x)
    m_1 = row_max(a)
    yield max m_1
  }
  c = reciprocal(m)
  b = tanh(m)
  s = map N (x_1 in !X, c_1 = c, w = b) {
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
    b = tanh(t1)
    h = square(x * c) * b over [M,N]
    t = row_sum(h)
    yield max t_1 = m_1
    yield +t by t_1: x * square(maximum(r, 1e-30) / maximum(r2, 1e-30)) * (tanh(maximum(r2, 1e-30)) / tanh(maximum(r, 1e-30)))
  }
  t2 = s * square(maximum(m, 1e-30) / m) * (tanh(m) / tanh(maximum(m, 1e-30)))
  return t2
}
