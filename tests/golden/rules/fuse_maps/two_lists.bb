# Both operands of the second map come from the first; both edges go.
graph(X: M[M]) {
  A, B = map M (x in !X) {
    a = x * 2
    b = x + 1
    yield a
    yield b
  }
  Y = map M (a_1 in !A, b_1 in !B) {
    y = mul(a_1, b_1)
    yield y
  }
  return Y
}
# after
graph(X: M[M]) {
  Y = map M (x in !X) {
    a = x * 2
    b = x + 1
    y = mul(a, b)
    yield y
  }
  return Y
}
