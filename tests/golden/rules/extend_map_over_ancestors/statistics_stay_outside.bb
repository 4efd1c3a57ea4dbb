# What the pulled map depends on is passed whole: the sum is computed once.
graph(X: N[M,N] = port, VT: L,N[L,N]) {
  s = map N (x in !X) {
    t = row_sum(x)
    yield +t
  }
  r = 1 / s
  E = map N (x_1 in !X, r2 = r) {
    e = row_scale(x_1, r2)
    f = tanh(e)
    yield f
  }
  O = map L (E2 = !E, v in !VT) {
    o = map N (e_1 in !E2, w in !v) {
      d = dot(e_1, w)
      yield +d
    }
    yield o
  }
  return O
}
# after
graph(X: N[M,N] = port, VT: L,N[L,N]) {
  s = map N (x in !X) {
    t = row_sum(x)
    yield +t
  }
  r = 1 / s
  O = map L (X_1 = !X, r_1 = r, v in !VT) {
    E = map N (x_1 in !X_1, r2 = r_1) {
      e = row_scale(x_1, r2)
      f = tanh(e)
      yield f
    }
    o = map N (e_1 in !E, w in !v) {
      d = dot(e_1, w)
      yield +d
    }
    yield o
  }
  return O
}
