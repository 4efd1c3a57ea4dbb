# Iteration 0 of the first map stands outside it.
graph(X: M[M]) {
  Y = map M (x in !X) {
    y = x + 1
    yield y
  }
  x_1 = head M (!X)
  t1 = exp(x_1)
  T = map M from 1 (a in !X; t1) {
    t = exp(a)
    yield t
  }
  return Y, T
}
# because: the first iteration of T was peeled off
