# A reduction folds the list, which fuse-reduction then takes, inside.
graph(S: H[M,N] = port, a: K[M] = port, b: K[N] = port) {
  C = map K (x in !a, y in !b) {
    d = x * y over [M,N]
    yield d
  }
  Y = map H (C_1 = !C, s in !S) {
    t = reduce + K (!C_1)
    y_1 = add(s, t)
    yield y_1
  }
  return Y
}
# after
graph(S: H[M,N] = port, a: K[M] = port, b: K[N] = port) {
  Y = map H (x = !a, y = !b, s in !S) {
    C = map K (x_1 in !x, y_1 in !y) {
      d = x_1 * y_1 over [M,N]
      yield d
    }
    t = reduce + K (!C)
    y_2 = add(s, t)
    yield y_2
  }
  return Y
}
