# What is scaled is a list that the loop of the magnitude makes; it has other readers.
graph(X: N[M,N] = port, Y: N[M,N] = port) {
  z, m = map N (x in !X, y in !Y) {
    z_1 = sub(x, y)
    a = abs(z_1)
    m_1 = row_max(a)
    yield z_1
    yield max m_1
  }
  c = 448 / m
  s, o = map N (z_2 in !z, c_1 = c) {
    y_1 = row_scale(z_2, c_1)
    h = square(y_1)
    t = row_sum(h)
    u = row_max(z_2)
    yield +t
    yield max u
  }
  return s, o, z
}
# after
graph(X: N[M,N] = port, Y: N[M,N] = port) {
  z, m, s = map N (x in !X, y in !Y) {
    z_1 = sub(x, y)
    a = abs(z_1)
    m_1 = row_max(a)
    t1 = maximum(m_1, 1e-30)
    c = 448 / t1
    y_1 = row_scale(z_1, c)
    h = square(y_1)
    t = row_sum(h)
    yield z_1
    yield max t_1 = m_1
    yield +t by t_1: x * square(maximum(r, 1e-30) / maximum(r2, 1e-30))
  }
  t2 = s * square(maximum(m, 1e-30) / m)
  o = map N (z_2 in !z) {
    u = row_max(z_2)
    yield max u
  }
  return t2, o, z
}
