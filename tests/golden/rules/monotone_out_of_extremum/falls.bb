# A function that falls turns a maximum into a minimum.
graph(X: N[M,N] = port) {
  m = map N (x in !X) {
    a = abs(x)
    m_1 = row_max(a)
    yield max m_1
  }
  s = map N (c = m, x_1 in !X) {
    h = c - x_1 over [M,N]
    t = row_max(h)
    yield max t
  }
  return s
}
# after
graph(X: N[M,N] = port) {
  m = map N (x in !X) {
    a = abs(x)
    m_1 = row_max(a)
    yield max m_1
  }
  s = map N (x_1 in !X) {
    t = row_min(x_1)
    yield min t
  }
  t1 = sub(m, s)
  return t1
}
