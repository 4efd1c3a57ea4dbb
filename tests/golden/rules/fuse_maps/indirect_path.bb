# The second map also waits for a reduction of the first one's list.
graph(X: H[M] = port) {
  E = map H (x in !X) {
    e = square(x)
    yield e
  }
  s = reduce + H (!E)
  Y = map H (e_1 in !E, s2 = s) {
    y = mul(e_1, s2)
    yield y
  }
  return Y
}
# because: Y also depends on E through reduce + H: fusing them would make a cycle
# wrong
graph(X: H[M] = port) {
  Y = map H (x in !X) {
    e = square(x)
    y = mul(e, e)
    yield y
  }
  return Y
}
