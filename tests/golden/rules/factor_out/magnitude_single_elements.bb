# Rows are not reduced by themselves, one operator does it all, and the root is a divisor.
graph(X: N[M] = port, Y: N[M] = port) {
  s = map N (x in !X) {
    q = square(x)
    yield +q
  }
  r = reciprocal(sqrt(s))
  z = map N (y in !Y, x_1 in !X, s_1 = r) {
    a = abs((y - x_1) * -s_1)
    yield max a
  }
  return z
}
# after
graph(X: N[M] = port, Y: N[M] = port) {
  z = map N (y in !Y, x in !X) {
    a = abs((y - x) * -1)
    yield max a
  }
  s = map N (x_1 in !X) {
    q = square(x_1)
    yield +q
  }
  r = reciprocal(sqrt(s))
  t1 = z * abs(r)
  return t1
}
