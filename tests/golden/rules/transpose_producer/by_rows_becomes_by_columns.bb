# Vectors of rows become vectors of columns; the list that is scaled is transposed itself.
graph(X: M,N[M,N], c: M[M], b: N[N]) {
  S = map M (x in !X, v in !c, w = !b) {
    s = map N (x_1 in !x, c_1 = v, b_1 in !w) {
      y = row_scale(x_1, c_1)
      z = row_shift(y, c_1)
      a = col_scale(z, b_1)
      e = exp(a)
      d = col_shift(e, b_1)
      f = mul(d, x_1)
      yield f
    }
    yield s
  }
  T = transpose N,M[N,M] (!S)
  return T
}
# after
graph(X: M,N[M,N], c: M[M], b: N[N]) {
  t1 = transpose N,M[N,M] (!X)
  S = map N (x in !t1, c_1 = !c, b_1 in !b) {
    S_1 = map M (x_1 in !x, c_2 in !c_1, b_2 = b_1) {
      y = col_scale(x_1, c_2)
      z = col_shift(y, c_2)
      a = row_scale(z, b_2)
      e = exp(a)
      d = row_shift(e, b_2)
      f = mul(d, x_1)
      yield f
    }
    yield S_1
  }
  return S
}
