# The map inside reads a sum of all items: it would not be fused with a copy.
graph(X: M[N,M], W: K,M[K,M]) {
  s, F = map M (x in !X) {
    t = row_sum(x)
    f = abs(x)
    yield +t
    yield f
  }
  A = map K (w in !W, s_1 = s) {
    a = map M (w_1 in !w, s_2 = s_1) {
      u = row_sum(w_1)
      o = outer(s_2, u)
      yield +o
    }
    yield a
  }
  B = map M (g in !F) {
    b = row_sum(g)
    yield +b
  }
  return A, B
}
# because: no map inside reads it item by item
