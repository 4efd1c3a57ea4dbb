# The iterations of maps over different dims do not correspond.
graph(X: M[M], WT: N,M[N,M]) {
  T = map M (x in !X) {
    t = x * 2
    yield t
  }
  Y = map N (w in !WT, t_1 = !T) {
    y = map M (b in !w, c in !t_1) {
      d = col_scale(b, c)
      e = row_sum(d)
      yield +e
    }
    yield y
  }
  return Y
}
# because: T runs over M and Y over N
