# What goes into an exponential may have a running maximum in the safe form.
graph(x: M,K[M,K], w: N,K[N,K]) {
  y = map M (x_1 in !x, w_1 = !w) {
    z = map N (x_2 = !x_1, w_2 in !w_1) {
      p = map K (a in !x_2, b in !w_2) {
        e = exp(a)
        d = dot(e, b)
        yield +d
      }
      yield p
    }
    yield z
  }
  return y
}
# because: p comes of a matmul, which would be computed twice
# because: e comes of an exponential, whose sums go with a running maximum
