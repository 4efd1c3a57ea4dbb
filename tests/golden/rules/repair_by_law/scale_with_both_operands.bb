# Both operands of the dot wait for the scale: it is no power of one number per row.
graph(X: N[M,N] = port, Y: [L,M]) {
  m = map N (x in !X) {
    a = abs(x)
    m_1 = row_max(a)
    yield max m_1
  }
  c = reciprocal(m)
  s = map N (x_1 in !X, c_1 = c, y = Y) {
    h = square(x_1 * c_1) over [M,N]
    u = transpose [N,M] (h)
    w = dot(y, u)
    t = dot(h, w)
    yield +t
  }
  return s
}
# because: s combines elements that wait
