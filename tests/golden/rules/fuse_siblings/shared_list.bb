# Two maps iterate one list: one pass over it.
graph(X: M[M]) {
  A = map M (x in !X) {
    a = x * 2
    yield a
  }
  B = map M (x_1 in !X) {
    b = x_1 + 1
    yield b
  }
  return A, B
}
# after
graph(X: M[M]) {
  A, B = map M (x in !X) {
    a = x * 2
    b = x + 1
    yield a
    yield b
  }
  return A, B
}
