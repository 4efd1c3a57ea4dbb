# A reduction folds the list that a map gives it: fuse-reduction takes it, inside.
graph(a: N[N], c: M[M]) {
  C = map N (b in !a) {
    d = b * 2
    yield d
  }
  Y = map M (x in !c, C_1 = !C) {
    T = map N (y = x, z in !C_1) {
      e = y > z over [M,N]
      f = row_sum(e)
      yield f
    }
    s = reduce + N (!T)
    yield s
  }
  return Y
}
# after
graph(a: N[N], c: M[M]) {
  Y = map M (b = !a, x in !c) {
    C = map N (b_1 in !b) {
      d = b_1 * 2
      yield d
    }
    T = map N (y = x, z in !C) {
      e = y > z over [M,N]
      f = row_sum(e)
      yield f
    }
    s = reduce + N (!T)
    yield s
  }
  return Y
}
