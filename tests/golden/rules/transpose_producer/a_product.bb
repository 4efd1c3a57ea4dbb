# A product is transposed by taking its operands the other way round.
graph(X: M,K[M,K], W: N,K[N,K]) {
  S = map M (x in !X, w = !W) {
    s = map N (x_1 = !x, w_1 in !w) {
      p = map K (a in !x_1, b in !w_1) {
        d = dot(a, b)
        yield +d
      }
      yield p
    }
    yield s
  }
  T = transpose N,M[N,M] (!S)
  return T
}
# after
graph(X: M,K[M,K], W: N,K[N,K]) {
  S = map N (w in !W, x = !X) {
    S_1 = map M (w_1 = !w, x_1 in !x) {
      p = map K (b in !w_1, a in !x_1) {
        d = dot(b, a)
        yield +d
      }
      yield p
    }
    yield S_1
  }
  return S
}
