# What would be copied sums over the dim of the map.
graph(Q: M,K[M,K], W: K,M[K,M]) {
  E, F = map M (q in !Q) {
    s = map K (q_1 in !q) {
      t = row_sum(q_1)
      yield +t
    }
    f = abs(s)
    yield s
    yield f
  }
  A = map K (w in !W, e = !E) {
    a = map M (w_1 in !w, e_1 in !e) {
      c = col_scale(w_1, e_1)
      u = row_sum(c)
      yield +u
    }
    yield a
  }
  B = map M (f_1 in !F) {
    b = row_sum(f_1)
    yield +b
  }
  return A, B
}
# because: M<K<row_sum> abs(x)> runs over K itself
