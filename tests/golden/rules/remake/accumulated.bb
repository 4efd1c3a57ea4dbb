# A maximum of vectors is no list: a loop makes it, once.
graph(X: K[M], Z: N[M,N] = port) {
  m = map K (x in !X) {
    s = x * 2
    yield max s
  }
  Y = map N (z in !Z, m_1 = m) {
    y = row_scale(z, m_1)
    yield y
  }
  return Y
}
