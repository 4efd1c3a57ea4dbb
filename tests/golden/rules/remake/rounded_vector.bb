# Of fewer axes anything may be rounded.
graph(S: M,N[M,N], a: N[N]) {
  C = map N (b in !a) {
    d = cast float16 (b)
    yield d
  }
  Y = map M (s in !S, C_1 = !C) {
    y = map N (t in !s, c in !C_1) {
      v = t * c over [M,N]
      yield v
    }
    yield y
  }
  return Y
}
# after
graph(S: M,N[M,N], a: N[N]) {
  Y = map M (b = !a, s in !S) {
    C = map N (b_1 in !b) {
      d = cast float16 (b_1)
      yield d
    }
    y = map N (t in !s, c in !C) {
      v = t * c over [M,N]
      yield v
    }
    yield y
  }
  return Y
}
