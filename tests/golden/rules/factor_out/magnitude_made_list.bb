# The map walks a list that the other makes: the two can become one.
graph(X: N[M,N] = port) {
  e, s = map N (x in !X) {
    e_1 = tanh(x)
    q = square(e_1)
    s_1 = row_sum(q)
    yield e_1
    yield +s_1
  }
  r = rsqrt(s)
  z = map N (e_2 in !e, r_1 = r) {
    y = row_scale(e_2, r_1)
    a = abs(y)
    z_1 = row_max(a)
    yield max z_1
  }
  return z
}
# after
graph(X: N[M,N] = port) {
  e, s = map N (x in !X) {
    e_1 = tanh(x)
    q = square(e_1)
    s_1 = row_sum(q)
    yield e_1
    yield +s_1
  }
  z = map N (e_2 in !e) {
    a = abs(e_2)
    z_1 = row_max(a)
    yield max z_1
  }
  r = rsqrt(s)
  t1 = z * abs(r)
  return t1
}
