# The statistic of a norm joins the loop over the same row of X.
graph(X: N[M,N] = port, VT: L,N[L,N], Z: N[M,N] = port) {
  s = map N (x in !X) {
    q = square(x)
    t = row_sum(q)
    yield +t
  }
  r = rsqrt(s)
  O = map L (E2 = !X, v in !VT, r2 = r) {
    o = map N (e in !E2, w in !v) {
      d = dot(e, w)
      yield +d
    }
    z = row_scale(o, r2)
    yield z
  }
  U = map N (z_1 in !Z) {
    u = exp(z_1)
    yield u
  }
  return O, U
}
# after
graph(X: N[M,N] = port, VT: L,N[L,N], Z: N[M,N] = port) {
  O = map L (X_1 = !X, v in !VT) {
    o = map N (e in !X_1, w in !v) {
      d = dot(e, w)
      yield +d
    }
    s = map N (x in !X_1) {
      q = square(x)
      t = row_sum(q)
      yield +t
    }
    r = rsqrt(s)
    z = row_scale(o, r)
    yield z
  }
  U = map N (z_1 in !Z) {
    u = exp(z_1)
    yield u
  }
  return O, U
}
