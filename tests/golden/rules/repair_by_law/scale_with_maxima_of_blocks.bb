# Only a dot is known to be linear in what is scaled; the largest of a block is something else.
graph(X: N[M,N] = port) {
  m = map N (x in !X) {
    a = abs(x)
    m_1 = row_max(a)
    yield max m_1
  }
  c = reciprocal(m)
  s = map N (x_1 in !X, c_1 = c) {
    h = square(x_1 * c_1) over [M,N]
    t = row_max(h)
    yield +t
  }
  return s
}
# because: s combines elements that wait
