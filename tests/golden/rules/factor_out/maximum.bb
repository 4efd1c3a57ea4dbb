# A negative factor makes the largest the smallest.
graph(X: K[M,K] = port) {
  s = map K (x in !X) {
    t = row_sum(x)
    yield +t
  }
  p = map K (x_1 in !X, c = s) {
    r = row_scale(x_1, c)
    a = row_max(r)
    yield max a
  }
  return p
}
# because: c stays in K<row_scale row_max>: it is none of exp, recip0, reciprocal: proofs do not decide whether it is negative
