# The groups of both maps keep their leads.
graph(X: H[M] = port) {
  t1, s1, T = map H (x in !X) {
    e = exp(x)
    yield max t = x
    yield +e by t: x * exp(sub0(r, r2))
    yield e
  }
  t2, s2 = map H (e_1 in !T) {
    f = e_1 + 1
    yield max t_1 = e_1
    yield +f by t_1: x * exp(sub0(r, r2))
  }
  return t1, s1, t2, s2
}
# after
graph(X: H[M] = port) {
  t1, s1, t2, s2 = map H (x in !X) {
    e = exp(x)
    f = e + 1
    yield max t = x
    yield +e by t: x * exp(sub0(r, r2))
    yield max t_1 = e
    yield +f by t_1: x * exp(sub0(r, r2))
  }
  return t1, s1, t2, s2
}
