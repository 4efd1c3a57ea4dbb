# The scale of a column of a product, and the magnitude of a row.
graph(X: N[M,N] = port, u: [K]) {
  m = map N (x in !X) {
    a = abs(x)
    m_1 = row_max(a)
    yield max m_1
  }
  c = outer(m, u)
  s = map N (x_1 in !X, c_1 = c) {
    b = row_sum(x_1)
    d = square(b)
    h = row_scale(c_1, d)
    yield +h
  }
  return s
}
# because: s does not shrink as its magnitude grows
