# Both read X, but the second needs the first one's sum.
graph(X: H[M] = port) {
  s = map H (x in !X) {
    e = square(x)
    yield +e
  }
  Y = map H (x_1 in !X, v = s) {
    y = mul(x_1, v)
    yield y
  }
  return Y
}
# because: Y depends on s: fusing them as siblings would make a cycle
# wrong
graph(X: H[M] = port) {
  Y = map H (x in !X) {
    e = square(x)
    y = mul(x, e)
    yield y
  }
  return Y
}
