# The function of the largest element is the largest one of all.
graph(X: N[M,N] = port) {
  m = map N (x in !X) {
    a = abs(x)
    m_1 = row_max(a)
    yield max m_1
  }
  s = map N (x_1 in !X, c = m) {
    h = maximum(x_1 - c, 0) over [M,N]
    t = row_max(h)
    yield max t
  }
  return s
}
# after
graph(X: N[M,N] = port) {
  s = map N (x in !X) {
    t = row_max(x)
    yield max t
  }
  m = map N (x_1 in !X) {
    a = abs(x_1)
    m_1 = row_max(a)
    yield max m_1
  }
  t1 = maximum(s - m, 0)
  return t1
}
