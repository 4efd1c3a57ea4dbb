# The first iteration of the map was peeled off.
graph(X: M[N,M], W: K,M[K,M]) {
  E, F = map M (x in !X) {
    e = exp(x)
    f = abs(x)
    yield e
    yield f
  }
  h = head K (!W)
  z = map M (e_1 in !E, w in !h) {
    d = dot(e_1, w)
    yield +d
  }
  A = map K from 1 (e_A = !E, w_A in !W; z) {
    a_A = map M (e2_A in !e_A, w2_A in !w_A) {
      d_A = dot(e2_A, w2_A)
      yield +d_A
    }
    yield a_A
  }
  B = map M (g in !F) {
    b = row_sum(g)
    yield +b
  }
  return A, B
}
# because: the first iteration of A was peeled off
# because: nobody else reads z: it need not be copied
