# What where hides stays 0 when the scale is infinite.
graph(X: N[M,N] = port, B: N[M,N] = port) {
  m = map N (x in !X) {
    a = abs(x)
    m_1 = row_max(a)
    yield max m_1
  }
  c = reciprocal(m)
  s = map N (b in !B, x_1 in !X, c_1 = c) {
    h = where(b, square(x_1 * c_1), 0) over [M,N]
    t = row_sum(h)
    yield +t
  }
  return s
}
# because: s hides its scale in where, and it may be infinite
