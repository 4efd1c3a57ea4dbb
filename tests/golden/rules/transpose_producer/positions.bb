# What is matched by dim keeps its vectors, and turns its blocks.
graph(X: M,N[M,N], i: M[M], j: N[N]) {
  S = map M (i_1 in !i, j_1 = !j, x in !X) {
    s = map N (i_2 = i_1, j_2 in !j_1, x_1 in !x) {
      y = where(i_2 >= j_2, x_1, 0) over [M,N]
      yield y
    }
    yield s
  }
  T = transpose N,M[N,M] (!S)
  return T
}
# after
graph(X: M,N[M,N], i: M[M], j: N[N]) {
  t1 = transpose N,M[N,M] (!X)
  S = map N (i_1 = !i, j_1 in !j, x in !t1) {
    S_1 = map M (i_2 in !i_1, j_2 = j_1, x_1 in !x) {
      y = where(i_2 >= j_2, x_1, 0) over [N,M]
      yield y
    }
    yield S_1
  }
  return S
}
