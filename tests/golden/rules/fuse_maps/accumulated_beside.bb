# The first map also accumulates; its sum is not read by the second map and stays a result.
graph(X: H[M] = port) {
  s, T = map H (x in !X) {
    t = x * 2
    yield +t
    yield t
  }
  Y = map H (t_1 in !T) {
    y = t_1 + 1
    yield y
  }
  return Y, s
}
# after
graph(X: H[M] = port) {
  Y, s = map H (x in !X) {
    t = x * 2
    y = t + 1
    yield y
    yield +t
  }
  return Y, s
}
