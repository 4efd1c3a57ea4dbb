# A maximum is repaired by a factor that is not negative.
graph(X: N[M,N] = port) {
  m = map N (x in !X) {
    a = square(x)
    m_1 = row_sum(a)
    yield +m_1
  }
  c = rsqrt(m + 1)
  s = map N (x_1 in !X, c_1 = c) {
    h = row_scale(x_1, c_1)
    t = row_max(h)
    yield max t
  }
  return s
}
# after
graph(X: N[M,N] = port) {
  m, s = map N (x in !X) {
    a = square(x)
    m_1 = row_sum(a)
    c = rsqrt(m_1 + 1)
    h = row_scale(x, c)
    t = row_max(h)
    yield +t_1 = m_1
    yield max t by t_1: where(x == -inf, x, x * (sqrt(r + 1) / sqrt(r2 + 1)))
  }
  return s
}
