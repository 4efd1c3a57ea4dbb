# A collected list that the second map iterates: one map, and the list is gone.
graph(X: M,K[M,K]) {
  T = map M (x in !X) {
    t = map K (b in !x) {
      c = b * 2
      yield c
    }
    yield t
  }
  Y = map M (x_1 in !T) {
    y = map K (b_1 in !x_1) {
      c_1 = b_1 + 1
      yield c_1
    }
    yield y
  }
  return Y
}
# after
graph(X: M,K[M,K]) {
  Y = map M (x in !X) {
    t = map K (b in !x) {
      c = b * 2
      yield c
    }
    y = map K (b_1 in !t) {
      c_1 = b_1 + 1
      yield c_1
    }
    yield y
  }
  return Y
}
