# A sum of numbers of both signs may be 0 before it is complete.
graph(X: N[M,N] = port) {
  m = map N (x in !X) {
    a = x + 0
    m_1 = row_sum(a)
    yield +m_1
  }
  s = map N (x_1 in !X, c = m) {
    h = square(x_1 / c) over [M,N]
    t = row_sum(h)
    yield +t
  }
  return s
}
# because: s cannot be repaired: h divides by what may be 0 before the last element
