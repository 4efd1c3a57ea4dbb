# The pulled map serves the other through a third node, which comes along.
graph(X: N[M,N] = port, VT: L,N[L,N]) {
  E, s = map N (x in !X) {
    e = exp(x)
    t = row_sum(e)
    yield e
    yield +t
  }
  r = 1 / s
  O = map L (E2 = !E, v in !VT, r2 = r) {
    o = map N (e_1 in !E2, w in !v) {
      d = dot(e_1, w)
      yield +d
    }
    z = row_scale(o, r2)
    yield z
  }
  R = map L (o_1 in !O) {
    q = exp(o_1)
    yield q
  }
  return R
}
# after
graph(X: N[M,N] = port, VT: L,N[L,N]) {
  O = map L (X_1 = !X, v in !VT) {
    E, s = map N (x in !X_1) {
      e = exp(x)
      t = row_sum(e)
      yield e
      yield +t
    }
    o = map N (e_1 in !E, w in !v) {
      d = dot(e_1, w)
      yield +d
    }
    r = 1 / s
    z = row_scale(o, r)
    yield z
  }
  R = map L (o_1 in !O) {
    q = exp(o_1)
    yield q
  }
  return R
}
