# Another result of the graph stays outside.
graph(X: N[M,N] = port, VT: L,N[L,N], Y: H[M,H] = port) {
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
  Z = map H (y in !Y) {
    z = exp(y)
    yield z
  }
  return O, Z
}
# after
graph(X: N[M,N] = port, VT: L,N[L,N], Y: H[M,H] = port) {
  O = map L (X_1 = !X, v in !VT) {
    E = map N (x in !X_1) {
      e = square(x)
      yield e
    }
    o = map N (e_1 in !E, w in !v) {
      d = dot(e_1, w)
      yield +d
    }
    yield o
  }
  Z = map H (y in !Y) {
    z = exp(y)
    yield z
  }
  return O, Z
}
