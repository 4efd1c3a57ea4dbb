# Only the lists change places: the items stay as they are.
graph(X: B,H,M[M]) {
  S = map B (x in !X) {
    s = map H (x_1 in !x) {
      t = map M (x_2 in !x_1) {
        y = exp(x_2)
        yield y
      }
      yield t
    }
    yield s
  }
  T = transpose M,H,B[M] (!S)
  return T
}
# after
graph(X: B,H,M[M]) {
  t1 = transpose M,H,B[M] (!X)
  S = map M (x in !t1) {
    S_1 = map H (x_1 in !x) {
      S_2 = map B (x_2 in !x_1) {
        y = exp(x_2)
        yield y
      }
      yield S_2
    }
    yield S_1
  }
  return S
}
