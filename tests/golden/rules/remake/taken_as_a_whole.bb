# In each iteration over M the list would be stored to be read in another order.
graph(S: M,N,K[M,N] = port, a: K[K], b: N[N]) {
  C = map K (x in !a, y = !b) {
    c = map N (z = x, u in !y) {
      d = z > u over [K,N]
      yield d
    }
    yield c
  }
  Y = map M (C_1 = !C, s in !S) {
    T = transpose N,K[K,N] (!C_1)
    y_1 = map N (t in !s, e in !T) {
      f = map K (g in !t, h in !e) {
        v = dot(g, h)
        yield v
      }
      yield f
    }
    yield y_1
  }
  return Y
}
# because: transpose takes the list as a whole: it would be stored in every iteration
