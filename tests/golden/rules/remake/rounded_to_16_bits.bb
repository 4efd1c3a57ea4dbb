# A block that is rounded may take fewer bytes than what it is made of.
graph(X: K[M,K] = port) {
  S, r = map K (x in !X) {
    s = cast float16 (x)
    t = row_sum(s)
    yield s
    yield +t
  }
  Y = map K (s_1 in !S, r_1 = r) {
    y = row_scale(s_1, r_1)
    yield y
  }
  return Y
}
# because: S is rounded to 16 bits: X, of which it is made, may take more bytes
