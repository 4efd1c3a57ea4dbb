# What is added to each of a row would be counted: that is such a second sum.
graph(X: B[M,K] = port) {
  s = map B (x in !X) {
    t = row_sum(x)
    yield +t
  }
  p = map B (x_1 in !X, c = s) {
    r = row_shift(x_1, c)
    a = row_sum(r)
    yield +a
  }
  return p
}
# because: c stays in B<row_shift row_sum>: a is no multiple of it: a value takes add of elements and producers together
