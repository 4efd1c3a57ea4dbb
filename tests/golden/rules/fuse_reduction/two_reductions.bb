# Two reductions of one list: each becomes a result of the map, one step at a time.
graph(X: H[M] = port) {
  E = map H (x in !X) {
    e = square(x)
    yield e
  }
  s = reduce + H (!E)
  m = reduce max H (!E)
  return s, m
}
# after
graph(X: H[M] = port) {
  s, E = map H (x in !X) {
    e = square(x)
    yield +e
    yield e
  }
  m = reduce max H (!E)
  return s, m
}
