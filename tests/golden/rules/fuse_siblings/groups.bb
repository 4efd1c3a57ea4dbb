# The groups of both maps keep their leads.
graph(X: H[M] = port) {
  t1, s1 = map H (x in !X) {
    e = x + 1
    yield max t = x
    yield +e by t: x * exp(sub0(r, r2))
  }
  t2, s2 = map H (x_1 in !X) {
    e_1 = x_1 * 2
    yield max t_1 = e_1
    yield +x_1 by t_1: x * exp(sub0(r, r2))
  }
  return s1, s2, t1, t2
}
# after
graph(X: H[M] = port) {
  t1, s1, t2, s2 = map H (x in !X) {
    e = x + 1
    e_1 = x * 2
    yield max t = x
    yield +e by t: x * exp(sub0(r, r2))
    yield max t_1 = e_1
    yield +x by t_1: x * exp(sub0(r, r2))
  }
  return s1, s2, t1, t2
}
