# The matmul reads all of the list in every iteration over N: for it the list stays.
graph(X: K[M,K] = port, g: K[K] = port, W: N,K[N,K]) {
  S, r = map K (x in !X, h in !g) {
    s = col_scale(x, h)
    t = row_sum(s)
    yield s
    yield +t
  }
  Y = map K (s_1 in !S, r_1 = r) {
    y = row_scale(s_1, r_1)
    yield y
  }
  P = map N (s_2 = !S, w in !W, r_2 = r) {
    p = map K (a in !s_2, b in !w) {
      d = dot(a, b)
      yield +d
    }
    q = row_scale(p, r_2)
    yield q
  }
  return Y, P
}
# because: S stays for N<K<dot> row_scale>, since the loop over N reads all of S in every iteration, and would make it again of X, which is as large
# because: the loop over N reads all of S in every iteration, and would make it again of X, which is as large
