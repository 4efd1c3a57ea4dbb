# Powers of the scale and of its absolute value against each other leave its sign.
graph(X: N[M,N] = port) {
  m = map N (x in !X) {
    a = abs(x)
    m_1 = row_max(a)
    yield max m_1
  }
  c = reciprocal(m)
  s = map N (x_1 in !X, c_1 = c) {
    h = x_1 * c_1 * c_1 / abs(c_1) over [M,N]
    t = row_sum(h)
    yield +t
  }
  return s
}
# because: s does not grow or shrink with its scale
