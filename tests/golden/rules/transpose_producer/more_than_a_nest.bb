# The outer map does more than run the inner one.
graph(X: M,N[M,N], c: M[M]) {
  S = map M (v in !c, x in !X) {
    r = v * 2
    s = map N (x_1 in !x, v_1 = r) {
      y = row_scale(x_1, v_1)
      yield y
    }
    yield s
  }
  T = transpose N,M[N,M] (!S)
  return T
}
# because: the map over M does more than run the next map
