# Partial sums of others are taken from one partial sum of this one to the next.
graph(X: K[M,K] = port, Z: K[M] = port) {
  s = map K (x in !X) {
    t = row_sum(x)
    yield +t
  }
  p, q = map K (x_1 in !X, c = s, z in !Z) {
    r = row_scale(x_1, c)
    a = row_sum(r)
    yield +t_1 = a
    yield +z by t_1: x * exp(r - r2)
  }
  return p, q
}
# because: c stays in K<row_scale row_sum>: a rescales z
# wrong
graph(X: K[M,K] = port, Z: K[M] = port) {
  p, q = map K (x in !X, z in !Z) {
    a = row_sum(x)
    yield +t = a
    yield +z by t: x * exp(r - r2)
  }
  s = map K (x_1 in !X) {
    t_1 = row_sum(x_1)
    yield +t_1
  }
  t1 = mul(p, s)
  return t1, q
}
