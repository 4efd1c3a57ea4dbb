# The first iteration was peeled off.
graph(X: N[M,N] = port) {
  m = map N (x in !X) {
    a = abs(x)
    m_1 = row_max(a)
    yield max m_1
  }
  c = reciprocal(m)
  b = head N (!X)
  b_1 = row_scale(b, c)
  b_2 = square(b_1)
  b_3 = row_sum(b_2)
  s = map N from 1 (x_1 in !X, c_1 = c; b_3) {
    y = row_scale(x_1, c_1)
    h = square(y)
    t = row_sum(h)
    yield +t
  }
  return s
}
# because: the first iteration of s was peeled off
