# Each iteration over M gives the whole list.
graph(X: M,N[M,N], a: N[N]) {
  C = map N (b in !a) {
    d = b * 2
    yield d
  }
  Y, Z = map M (x in !X, C_1 = !C) {
    y = map N (t in !x, c in !C_1) {
      v = t * c over [M,N]
      yield v
    }
    yield y
    yield C_1
  }
  return Y, Z
}
# because: each iteration over M gives the list as it is
