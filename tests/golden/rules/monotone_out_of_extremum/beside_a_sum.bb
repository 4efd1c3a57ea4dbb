# Other results stay in a loop of their own.
graph(X: N[M,N] = port) {
  m = map N (x in !X) {
    a = abs(x)
    m_1 = row_max(a)
    yield max m_1
  }
  s, z = map N (x_1 in !X, c = m) {
    h = maximum(x_1 - c, 0) over [M,N]
    t = row_max(h)
    z_1 = row_sum(h)
    yield max t
    yield +z_1
  }
  return s, z
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
  z = map N (x_2 in !X, c = m) {
    h = maximum(x_2 - c, 0) over [M,N]
    z_1 = row_sum(h)
    yield +z_1
  }
  return t1, z
}
