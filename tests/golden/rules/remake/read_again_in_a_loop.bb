# The right operand of a matmul: every iteration over M reads all of it.
graph(X: M,K[M,K], Z: N,K[N,K], g: K[K]) {
  S = map N (z in !Z, h = !g) {
    s = map K (a in !z, b in !h) {
      c = col_scale(a, b)
      yield c
    }
    yield s
  }
  Y = map M (x in !X, S_1 = !S) {
    y = map N (x_1 = !x, s_1 in !S_1) {
      p = map K (d in !x_1, e in !s_1) {
        f = dot(d, e)
        yield +f
      }
      yield p
    }
    yield y
  }
  return Y
}
# because: the loop over M reads all of S in every iteration, and would make it again of Z, which is as large
