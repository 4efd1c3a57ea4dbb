# Two maps would compute the product twice.
graph(X: K[M,K] = port, Q: D[M,D] = port, W: K,D[K,D]) {
  s = map K (x in !X) {
    t = row_sum(x)
    yield +t
  }
  e, l = map K (q = !Q, w in !W, x_1 in !X, c = s) {
    p = map D (q_1 in !q, w_1 in !w) {
      d = dot(q_1, w_1)
      yield +d
    }
    g = mul(p, x_1)
    r = row_scale(g, c)
    a = row_sum(r)
    yield r
    yield +a
  }
  y = map K (e_1 in !e, l_1 = l) {
    z = row_shift(e_1, l_1)
    yield z
  }
  return y
}
# because: c stays in K<D<dot> mul row_scale row_sum>: r is not summed over K
