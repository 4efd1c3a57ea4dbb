# The reader's first iteration is elsewhere.
graph(S: M,N[M,N], a: N[N], f: N[M,N]) {
  C = map N (b in !a) {
    d = b * 2
    yield d
  }
  Y = map M from 1 (s in !S, C_1 = !C; !f) {
    y = map N (t in !s, c in !C_1) {
      v = t * c over [M,N]
      yield v
    }
    yield y
  }
  return Y
}
# because: the first iteration of Y was peeled off
