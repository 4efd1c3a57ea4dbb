# Softmax: the scale needs the whole sum, which is complete only after the last iteration.
graph(X: H[M] = port) {
  E, s = map H (x in !X) {
    e = square(x)
    yield e
    yield +e
  }
  Y = map H (e_1 in !E, s2 = s) {
    y = mul(e_1, s2)
    yield y
  }
  return Y
}
# because: s reaches Y as an accumulated result: it is complete only after the last iteration
# wrong
graph(X: H[M] = port) {
  Y = map H (x in !X) {
    e = square(x)
    y = mul(e, e)
    yield y
  }
  return Y
}
