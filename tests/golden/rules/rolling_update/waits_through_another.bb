# Between the loops stand functions of elements alone.
graph(X: N[M,N] = port) {
  m = map N (x in !X) {
    a = abs(x)
    m_1 = row_max(a)
    yield max m_1
  }
  b = relabel M -> M' (m)
  d = outer(m, b)
  e = row_sum(d)
  s = map N (x_1 in !X, e_1 = e) {
    h = square(x_1 / (e_1 + 1)) over [M,N]
    t = row_sum(h)
    yield +t
  }
  return s
}
# because: s waits for row_sum, which depends on the same loop
