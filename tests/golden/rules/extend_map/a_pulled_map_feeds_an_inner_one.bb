# (a) Attention: the map over N that makes the list meets the map over N that reads it.
graph(X: N[M,N] = port, VT: L,N[L,N]) {
  E, l = map N (x in !X) {
    e = square(x)
    t = row_sum(e)
    yield e
    yield +t
  }
  O = map L (e_1 = !E, v in !VT, l2 = l) {
    z = map N (a in !e_1, b in !v) {
      d = dot(a, b)
      yield +d
    }
    y = row_scale(z, l2)
    yield y
  }
  return O
}
# after
graph(X: N[M,N] = port, VT: L,N[L,N]) {
  O = map L (X_1 = !X, v in !VT) {
    l, E = map N (x in !X_1) {
      e = square(x)
      t = row_sum(e)
      yield +t
      yield e
    }
    z = map N (a in !E, b in !v) {
      d = dot(a, b)
      yield +d
    }
    y = row_scale(z, l)
    yield y
  }
  return O
}
