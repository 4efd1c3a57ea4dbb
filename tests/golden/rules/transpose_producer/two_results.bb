# The nest makes another list, whose order would change too.
graph(X: M,N[M,N]) {
  Z, S = map M (x in !X) {
    z, s = map N (x_1 in !x) {
      a = abs(x_1)
      y = exp(x_1)
      yield a
      yield y
    }
    yield z
    yield s
  }
  T = transpose N,M[N,M] (!S)
  return T, Z
}
# because: M<N<abs(x) exp(x)>> has 2 results
