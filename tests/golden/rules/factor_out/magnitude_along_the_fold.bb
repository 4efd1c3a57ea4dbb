# The factor changes along the axis that is folded.
graph(X: K[M,N] = port) {
  s = map K (x in !X) {
    q = square(x)
    yield +q
  }
  r = rsqrt(s)
  z = map K (x_1 in !X, s_1 = r) {
    y = mul(x_1, s_1)
    a = abs(y)
    z_1 = row_max(a)
    yield max z_1
  }
  return z
}
# because: s stays in K<mul abs(x) row_max>: z is no multiple of it: a value is folded along N, along which it changes
