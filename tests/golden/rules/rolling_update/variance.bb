# The distance from a mean has no repair: Welford folds tuples.
graph(X: N[M,N] = port) {
  m = map N (x in !X) {
    a = x + 0
    m_1 = row_sum(a)
    yield +m_1
  }
  s = map N (x_1 in !X, c = m) {
    h = square(x_1 - c) over [M,N]
    t = row_sum(h)
    yield +t
  }
  return s
}
# because: s cannot be repaired: g(r', c) / g(r, c) depends on c, and only a factor distributes over +
