# The first iteration of the map around the sum stands outside of it.
graph(x: M,K[M,K], h: M[M]) {
  a = head M (!h)
  y = map M from 1 (x_1 in !x, h_1 in !h; a) {
    s = map K (b in !x_1) {
      t = row_sum(b)
      yield +t
    }
    u = h_1 * s over [M]
    yield u
  }
  return y
}
# because: the first iteration of y was peeled off
