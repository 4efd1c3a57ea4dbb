# The first iteration of the inner map was peeled off.
graph(X: M,N[M,N]) {
  S = map M (x in !X) {
    h = head N (!x)
    z = exp(h)
    s = map N from 1 (x_1 in !x; z) {
      y = exp(x_1)
      yield y
    }
    yield s
  }
  T = transpose N,M[N,M] (!S)
  return T
}
# because: the map over M does more than run the next map
