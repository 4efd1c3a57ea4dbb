# Each element changes by the same number, which a sum multiplies by their number.
graph(X: N[M,N] = port) {
  m = map N (x in !X) {
    a = abs(x)
    m_1 = row_max(a)
    yield max m_1
  }
  s = map N (x_1 in !X, c = m) {
    h = x_1 + c over [M,N]
    t = row_sum(h)
    yield +t
  }
  return s
}
# because: s cannot be repaired: a changed shift s leaves s times the number of elements, which h is not given
