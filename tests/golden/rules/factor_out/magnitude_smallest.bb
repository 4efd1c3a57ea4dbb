# The root of an infinite sum is 0, and an infinite element NaN; the smallest would not show it.
graph(X: N[M] = port) {
  s = map N (x in !X) {
    q = square(x)
    yield +q
  }
  r = rsqrt(s)
  z = map N (x_1 in !X, r_1 = r) {
    y = x_1 * r_1
    a = abs(y)
    yield min a
  }
  return z
}
# because: r stays in N<x * y abs(x)>: it is none of exp, recip0, reciprocal: proofs do not decide whether it is negative
