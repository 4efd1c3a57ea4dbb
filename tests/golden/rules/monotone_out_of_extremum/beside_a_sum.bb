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
