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
    t1 = reciprocal(maximum(a, 1e-30))
    h = square(x * t1)
    yield max t = a
    yield +h by t: x * square(maximum(r, 1e-30) / maximum(r2, 1e-30))
  }
  c = reciprocal(m)
  t2 = s * square(c * maximum(m, 1e-30))
  return t2
}
