# To read the sums of all rows and columns for each head takes more than to compute them.
graph(x: H,M,N[M,N], i: M[M], j: N[N]) {
  y = map H (i_1 = !i, j_1 = !j, x_1 in !x) {
    z = map M (i_2 in !i_1, j_2 = !j_1, x_2 in !x_1) {
      u = map N (i_3 = i_2, j_3 in !j_2, a in !x_2) {
        e = i_3 + j_3 over [M,N]
        s = a + e
        yield s
      }
      yield u
    }
    yield z
  }
  return y
}
# because: e has more dims than each of what it is computed from
