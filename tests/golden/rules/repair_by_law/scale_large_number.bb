# 1e10 over a block of zeros would be infinite, and times 0 be NaN.
graph(X: N[M,N] = port) {
  m = map N (x in !X) {
    a = abs(x)
    m_1 = row_max(a)
    yield max m_1
  }
  c = 10000000000 / m
  s = map N (x_1 in !X, c_1 = c) {
    h = square(x_1 * c_1) over [M,N]
    t = row_sum(h)
    yield +t
  }
  return s
}
# because: s has the number 1e+10, which makes an infinity of small magnitudes
