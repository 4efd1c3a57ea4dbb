# The smallest size; items are not reduced by themselves, and one operator does it all.
graph(X: N[M] = port, Y: N[M] = port) {
  s = map N (x in !X) {
    q = square(x)
    yield +q
  }
  r = exp(s)
  z = map N (y in !Y, x_1 in !X, s_1 = r) {
    a = abs((y - x_1) * -s_1)
    yield min a
  }
  return z
}
# after
graph(X: N[M] = port, Y: N[M] = port) {
  z = map N (y in !Y, x in !X) {
    a = (y - x) * -1
    a_1 = abs(a)
    yield min a_1
  }
  s = map N (x_1 in !X) {
    q = square(x_1)
    yield +q
  }
  r = exp(s)
  t1 = z * abs(r)
  return t1
}
