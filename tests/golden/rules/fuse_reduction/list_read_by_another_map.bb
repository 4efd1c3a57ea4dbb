# Another map reads the list: it stays a result beside the sum.
graph(X: H[M] = port) {
  E = map H (x in !X) {
    e = square(x)
    yield e
  }
  s = reduce + H (!E)
  Y = map H (e_1 in !E, v = s) {
    y = mul(e_1, v)
    yield y
  }
  return Y
}
# after
graph(X: H[M] = port) {
  E, s = map H (x in !X) {
    e = square(x)
    yield e
    yield +e
  }
  Y = map H (e_1 in !E, v = s) {
    y = mul(e_1, v)
    yield y
  }
  return Y
}
