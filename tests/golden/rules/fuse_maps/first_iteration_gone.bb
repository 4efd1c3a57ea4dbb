# Iteration 0 of the producer stands outside it.
graph(X: M[M]) {
  x = head M (!X)
  t1 = exp(x)
  T = map M from 1 (a in !X; t1) {
    t = exp(a)
    yield t
  }
  Y = map M (t_1 in !T) {
    y = t_1 + 1
    yield y
  }
  return Y
}
# because: the first iteration of T was peeled off
