# The largest weight of a softmax.
graph(X: N[M,N] = port) {
  E, s = map N (x in !X) {
    e = exp(x)
    s_1 = row_sum(e)
    yield e
    yield +s_1
  }
  r = recip0(s)
  z = map N (e_1 in !E, r_1 = r) {
    y = row_scale(e_1, r_1)
    z_1 = row_max(y)
    yield max z_1
  }
  return z
}
# after
graph(X: N[M,N] = port) {
  E, s = map N (x in !X) {
    e = exp(x)
    s_1 = row_sum(e)
    yield e
    yield +s_1
  }
  z = map N (e_1 in !E) {
    z_1 = row_max(e_1)
    yield max z_1
  }
  r = recip0(s)
  t1 = mul(z, r)
  return t1
}
