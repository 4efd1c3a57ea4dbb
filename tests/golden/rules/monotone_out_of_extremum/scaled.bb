# A sum of absolute values is not negative.
graph(X: N[M,N] = port) {
  m = map N (x in !X) {
    a = abs(x)
    m_1 = row_sum(a)
    yield +m_1
  }
  c = reciprocal(m + 1)
  s = map N (x_1 in !X, c_1 = c) {
    h = square(x_1) * c_1 over [M,N]
    t = row_min(h)
    yield min t
  }
  return s
}
# after
graph(X: N[M,N] = port) {
  s = map N (x in !X) {
    t1 = square(x)
    t = row_min(t1)
    yield min t
  }
  m = map N (x_1 in !X) {
    a = abs(x_1)
    m_1 = row_sum(a)
    yield +m_1
  }
  c = reciprocal(m + 1)
  t2 = mul(s, c)
  return t2
}
