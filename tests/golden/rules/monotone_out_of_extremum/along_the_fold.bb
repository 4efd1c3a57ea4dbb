# The factor changes along the axis that is folded.
graph(X: K[M,N] = port) {
  s = map K (x in !X) {
    q = exp(x)
    yield +q
  }
  r = reciprocal(s)
  z = map K (x_1 in !X, s_1 = r) {
    y = mul(x_1, s_1)
    z_1 = row_max(y)
    yield max z_1
  }
  return z
}
# because: z waits for r, which changes along what is folded
