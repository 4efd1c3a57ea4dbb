# The list is a result of the program: it stays a result of the fused map.
graph(X: M[M]) {
  T = map M (x in !X) {
    t = x * 2
    yield t
  }
  Y = map M (t_1 in !T) {
    y = t_1 + 1
    yield y
  }
  return T, Y
}
# after
graph(X: M[M]) {
  T, Y = map M (x in !X) {
    t = x * 2
    y = t + 1
    yield t
    yield y
  }
  return T, Y
}
