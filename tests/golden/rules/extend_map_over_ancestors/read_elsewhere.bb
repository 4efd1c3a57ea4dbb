# Another node reads the list: pulled in, it would be made twice.
graph(X: N[M,N] = port, VT: L,N[L,N]) {
  E = map N (x in !X) {
    e = square(x)
    yield e
  }
  O = map L (E2 = !E, v in !VT) {
    o = map N (e_1 in !E2, w in !v) {
      d = dot(e_1, w)
      yield +d
    }
    yield o
  }
  Z = map N (y in !E) {
    z = exp(y)
    yield z
  }
  return O, Z
}
# because: E is also read by N<exp(x)>
