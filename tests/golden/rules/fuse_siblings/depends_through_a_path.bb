# Both read X, but the second needs the first one's list, reduced.
graph(X: H[M] = port) {
  E = map H (x in !X) {
    e = square(x)
    yield e
  }
  s = reduce + H (!E)
  Y = map H (x_1 in !X, v = s) {
    y = mul(x_1, v)
    yield y
  }
  return Y, E
}
# because: Y depends on E: fusing them as siblings would make a cycle
# wrong
graph(X: H[M] = port) {
  Y, E = map H (x in !X) {
    e = square(x)
    y = mul(x, e)
    yield y
    yield e
  }
  return Y, E
}
