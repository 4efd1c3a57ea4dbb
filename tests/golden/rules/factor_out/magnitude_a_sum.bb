# A sum is for other rules.
graph(X: N[M] = port) {
  s = map N (x in !X) {
    q = square(x)
    yield +q
  }
  r = rsqrt(s)
  z = map N (x_1 in !X, r_1 = r) {
    y = x_1 * r_1
    a = abs(y)
    yield +a
  }
  return z
}
# because: r stays in N<x * y abs(x)>: a is a multiple of another power of it, or of its size
