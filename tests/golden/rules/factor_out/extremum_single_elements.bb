# Items are not reduced by themselves; a minimum of differences.
graph(X: N[M] = port, Y: N[M] = port) {
  s = map N (x in !X) {
    q = exp(x)
    yield +q
  }
  r = recip0(s)
  z = map N (y in !Y, x_1 in !X, s_1 = r) {
    d = sub(y, x_1)
    u = mul(s_1, d)
    yield min u
  }
  return z
}
# after
graph(X: N[M] = port, Y: N[M] = port) {
  z = map N (y in !Y, x in !X) {
    d = sub(y, x)
    yield min d
  }
  s = map N (x_1 in !X) {
    q = exp(x_1)
    yield +q
  }
  r = recip0(s)
  t1 = mul(z, r)
  return t1
}
