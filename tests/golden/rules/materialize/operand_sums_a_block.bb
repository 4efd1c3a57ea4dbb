# The maximum of a block of a row is a number per block: as many as there are blocks.
graph(x: M,K[M,K], w: N,K[N,K]) {
  y = map M (x_1 in !x, w_1 = !w) {
    z = map N (x_2 = !x_1, w_2 in !w_1) {
      p = map K (a in !x_2, b in !w_2) {
        d = dot(a, b)
        m = row_max(a)
        s = row_scale(d, m)
        yield +s
      }
      yield p
    }
    yield z
  }
  return y
}
# because: p comes of a matmul, which would be computed twice
# because: m is made of sums of single blocks of K
