# A body that holds a map of its own: its dots turn, and the lists that it reads stay.
graph(X: M,K[M,K], W: N,K[N,K], c: M[M]) {
  S = map M (x in !X, w = !W, v in !c) {
    s = map N (x_1 = !x, w_1 in !w, v_1 = v) {
      p = map K (a in !x_1, b in !w_1) {
        d = dot(a, b)
        yield d
      }
      q = reduce + K (!p)
      y = row_scale(q, v_1)
      yield y
    }
    yield s
  }
  T = transpose N,M[N,M] (!S)
  return T
}
# after
graph(X: M,K[M,K], W: N,K[N,K], c: M[M]) {
  S = map N (w in !W, x = !X, v = !c) {
    S_1 = map M (w_1 = !w, x_1 in !x, v_1 in !v) {
      p = map K (b in !w_1, a in !x_1) {
        d = dot(b, a)
        yield d
      }
      q = reduce + K (!p)
      y = col_scale(q, v_1)
      yield y
    }
    yield S_1
  }
  return S
}
