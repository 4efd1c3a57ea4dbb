# The rows are those of a product: to sum them apart would take the product twice.
graph(x: M,K[M,K], w: N,K[N,K]) {
  y = map M (x_1 in !x, w_1 = !w) {
    h, s = map N (x_2 = !x_1, w_2 in !w_1) {
      p = map K (a in !x_2, b in !w_2) {
        d = dot(a, b)
        yield +d
      }
      q = square(p)
      t = row_sum(q)
      yield p
      yield +t
    }
    z = map N (h_1 in !h, s_1 = s) {
      u = row_scale(h_1, s_1)
      yield u
    }
    yield z
  }
  return y
}
# because: s comes of a matmul, which would be computed twice
# because: p comes of a matmul, which would be computed twice
