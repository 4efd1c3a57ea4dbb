# Proofs know no law of roots of products.
graph(X: N[M,N] = port) {
  m = map N (x in !X) {
    a = abs(x)
    m_1 = row_max(a)
    yield max m_1
  }
  c = -1 / m
  s = map N (x_1 in !X, c_1 = c) {
    h = sqrt(x_1 * c_1) over [M,N]
    t = row_sum(h)
    yield +t
  }
  return s
}
# because: s takes a root of its magnitude, which proofs do not take apart
