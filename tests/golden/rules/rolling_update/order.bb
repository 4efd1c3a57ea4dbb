# Another element becomes the maximum as the lead grows.
graph(X: N[M,N] = port) {
  m = map N (x in !X) {
    a = x + 0
    m_1 = row_sum(a)
    yield +m_1
  }
  s = map N (x_1 in !X, c = m) {
    h = abs(x_1 - c) over [M,N]
    t = row_max(h)
    yield max t
  }
  return s
}
# because: s cannot be repaired: the order of elements changes with r, so another one may become the max
