# A block of zeros has 1 for its magnitude; behind the loop the magnitude itself is used.
graph(X: N[M,N] = port) {
  m = map N (x in !X) {
    a = abs(x)
    m_1 = row_max(a)
    yield max m_1
  }
  s = map N (x_1 in !X, c = m) {
    h = square(x_1 / c) over [M,N]
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
    t1 = where(m_1 == 0, 1, m_1)
    h = square(x / t1) over [M,N]
    t = row_sum(h)
    yield max t_1 = m_1
    yield +t by t_1: where(x == 0, x, x * square(where(r == 0, 1, r) / where(r2 == 0, 1, r2)))
  }
  t2 = s * square(where(m == 0, 1, m) / m)
  return t2
}
