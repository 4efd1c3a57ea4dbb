# Nobody else reads it: extend-map-over-ancestors takes it in.
graph(X: M[N,M], W: K,M[K,M], V: L,M[L,M]) {
  E = map M (x in !X) {
    e = exp(x)
    yield e
  }
  A = map K (e_A = !E, w_A in !W) {
    a_A = map M (e2_A in !e_A, w2_A in !w_A) {
      d_A = dot(e2_A, w2_A)
      yield +d_A
    }
    yield a_A
  }
  return A
}
# because: nobody else reads E: it need not be copied
