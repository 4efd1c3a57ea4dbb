# The list is a result of the program: it stays a result beside the sum.
graph(X: H[M] = port) {
  E = map H (x in !X) {
    e = square(x)
    yield e
  }
  s = reduce + H (!E)
  return E, s
}
# after
graph(X: H[M] = port) {
  E, s = map H (x in !X) {
    e = square(x)
    yield e
    yield +e
  }
  return E, s
}
