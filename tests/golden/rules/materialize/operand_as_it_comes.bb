# To round an item is no computation: who reads the list may as well do so.
graph(x: M,K[M,K], w: N,K[N,K]) {
  y = map M (x_1 in !x, w_1 = !w) {
    z = map N (x_2 = !x_1, w_2 in !w_1) {
      p = map K (a in !x_2, b in !w_2) {
        h = cast float16 (a)
        d = dot(h, b)
        yield +d
      }
      yield p
    }
    yield z
  }
  return y
}
# because: p comes of a matmul, which would be computed twice
