# The first iteration of the outer map was peeled off.
graph(X: M,N[M,N]) {
  h = head M (!X)
  z = map N (x in !h) {
    y = exp(x)
    yield y
  }
  S = map M from 1 (x_1 in !X; !z) {
    s = map N (x_2 in !x_1) {
      y_1 = exp(x_2)
      yield y_1
    }
    yield s
  }
  T = transpose N,M[N,M] (!S)
  return T
}
# because: the first iteration of S was peeled off
