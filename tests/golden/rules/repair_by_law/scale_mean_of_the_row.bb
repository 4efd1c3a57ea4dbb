# The sum of a row of scaled elements is in each of its elements.
graph(X: N[M,N] = port) {
  m = map N (x in !X) {
    a = abs(x)
    m_1 = row_max(a)
    yield max m_1
  }
  c = reciprocal(m)
  s = map N (x_1 in !X, c_1 = c) {
    y = row_scale(x_1, c_1)
    u = row_sum(y)
    h = x_1 * u over [M,N]
    k = row_scale(h, c_1)
    t = row_sum(k)
    yield +t
  }
  return s
}
# because: s combines elements that wait
