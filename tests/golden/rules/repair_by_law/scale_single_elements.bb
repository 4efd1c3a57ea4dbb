# Each element of the blocks has a magnitude of its own.
graph(X: N[M,K] = port) {
  m = map N (x in !X) {
    a = abs(x)
    yield max a
  }
  c = reciprocal(m)
  s = map N (x_1 in !X, c_1 = c) {
    h = square(x_1 * c_1)
    yield +h
  }
  return s
}
# after
graph(X: N[M,K] = port) {
  m, s = map N (x in !X) {
    a = abs(x)
    t1 = maximum(a, 1e-30)
    c = reciprocal(t1)
    h = square(x * c)
    yield max t = a
    yield +h by t: x * square(maximum(r, 1e-30) / maximum(r2, 1e-30))
  }
  t2 = s * square(maximum(m, 1e-30) / m)
  return t2
}
