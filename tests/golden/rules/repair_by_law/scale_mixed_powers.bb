# A sum of two powers of the scale is no power of it.
graph(X: N[M,N] = port) {
  m = map N (x in !X) {
    a = abs(x)
    m_1 = row_max(a)
    yield max m_1
  }
  c = reciprocal(m)
  s = map N (x_1 in !X, c_1 = c) {
    h = square(x_1 * c_1 + 1) over [M,N]
    t = row_sum(h)
    yield +t
  }
  return s
}
# because: s cannot be rescaled: it takes add of elements and producers together
# wrong
graph(X: N[M,N] = port) {
  m, s = map N (x in !X) {
    a = abs(x)
    m_1 = row_max(a)
    q = reciprocal(maximum(m_1, 1e-30))
    h = square(x * q + 1) over [M,N]
    t = row_sum(h)
    yield max t_1 = m_1
    yield +t by t_1: x * square(maximum(r, 1e-30) / maximum(r2, 1e-30))
  }
  c = reciprocal(m)
  z = s * square(c * maximum(m, 1e-30)) over [M]
  return z
}
