# What is stored needs the lead itself.
graph(X: N[M,N] = port) {
  m = map N (x in !X) {
    a = abs(x)
    m_1 = row_max(a)
    yield max m_1
  }
  s = map N (x_1 in !X, c = m) {
    h = row_scale(x_1, c)
    yield h
  }
  return s
}
