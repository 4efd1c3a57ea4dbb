# Items are not reduced by themselves.
graph(X: N[M] = port, K: N[M] = port) {
  m = map N (x in !X) {
    yield max x
  }
  i = map N (x_1 in !X, m_1 = m, k in !K) {
    h = where(x_1 == m_1, k, -inf)
    yield max h
  }
  return i
}
# after
graph(X: N[M] = port, K: N[M] = port) {
  m, i = map N (x in !X, k in !K) {
    h = where(x == x, k, -inf)
    yield max t = x
    yield max h by t: where(r == r2, x, -inf)
  }
  return i
}
