# The fold would lack the value of iteration 0.
graph(X: K[M,K] = port) {
  x = head K (!X)
  p0 = row_sum(x)
  P = map K from 1 (a in !X; p0) {
    p = row_sum(a)
    yield p
  }
  r = reduce + K (!P)
  return r
}
# because: the first iteration of P was peeled off
