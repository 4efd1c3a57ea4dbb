# Two vectors would be read for one, and there is nothing larger beside them.
graph(S: M,N[N], a: N[N], b: N[N]) {
  C = map N (x in !a, y in !b) {
    d = x > y
    yield d
  }
  Y = map M (s in !S, C_1 = !C) {
    y_1 = map N (t in !s, c in !C_1) {
      v = t * c
      yield v
    }
    yield y_1
  }
  return Y
}
# because: each reader of C would read items of a and b, all as large as its own
