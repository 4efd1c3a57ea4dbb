# Two vectors are read for one, where each meets a block.
graph(S: M,N[M,N], a: N[N], b: N[N]) {
  C = map N (x in !a, y in !b) {
    d = x > y
    yield d
  }
  Y = map M (C_1 = !C, s in !S) {
    y_1 = map N (c in !C_1, t in !s) {
      e = c * 2
      v = t * e over [M,N]
      yield v
    }
    yield y_1
  }
  return Y
}
# after
graph(S: M,N[M,N], a: N[N], b: N[N]) {
  Y = map M (x = !a, y = !b, s in !S) {
    C = map N (x_1 in !x, y_1 in !y) {
      d = x_1 > y_1
      yield d
    }
    y_2 = map N (c in !C, t in !s) {
      e = c * 2
      v = t * e over [M,N]
      yield v
    }
    yield y_2
  }
  return Y
}
