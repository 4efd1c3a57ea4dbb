# The list has another reader: it stays a result of the fused map.
graph(X: H[M] = port) {
  T = map H (x in !X) {
    t = x * 2
    yield t
  }
  Y = map H (t_1 in !T) {
    y = t_1 + 1
    yield y
  }
  s = reduce + H (!T)
  return Y, s
}
# after
graph(X: H[M] = port) {
  Y, T = map H (x in !X) {
    t = x * 2
    y = t + 1
    yield y
    yield t
  }
  s = reduce + H (!T)
  return Y, s
}
