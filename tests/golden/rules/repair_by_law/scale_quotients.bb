# A product of powers of quotients by what keeps the magnitude from zero, and of weights.
graph(X: N[M,N] = port, V: N[N] = port) {
  m = map N (x in !X) {
    a = abs(x)
    m_1 = row_max(a)
    yield max m_1
  }
  c = maximum(m, 0.001)
  s = map N (v in !V, x_1 in !X, c_1 = c) {
    h = v * abs(x_1 / c_1) ** 3 over [M,N]
    t = row_sum(h)
    yield +t
  }
  return s
}
# after
graph(X: N[M,N] = port, V: N[N] = port) {
  m, s = map N (x in !X, v in !V) {
    a = abs(x)
    m_1 = row_max(a)
    t1 = maximum(m_1, 1e-30)
    c = maximum(t1, 0.001)
    h = v * abs(x / c) ** 3 over [M,N]
    t = row_sum(h)
    yield max t_1 = m_1
    yield +t by t_1: x * (maximum(maximum(r, 1e-30), 0.001) / maximum(maximum(r2, 1e-30), 0.001)) ** 3
  }
  t2 = s * (maximum(maximum(m, 1e-30), 0.001) / maximum(m, 0.001)) ** 3
  return t2
}
