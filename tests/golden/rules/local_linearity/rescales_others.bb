# Partial sums of others are taken from one partial sum of the dots to the next.
graph(X: K[M,K] = port, c: [M], Y: K[N,K] = port, Z: K[M,N] = port) {
  p, q = map K (x in !X, v = c, y in !Y, z in !Z) {
    s = row_scale(x, v)
    d = dot(s, y)
    yield +t = d
    yield +z by t: x * exp(r - r2)
  }
  return p, q
}
# because: the dot of s rescales z
# wrong
graph(X: K[M,K] = port, c: [M], Y: K[N,K] = port, Z: K[M,N] = port) {
  p, q = map K (x in !X, y in !Y, z in !Z) {
    d = dot(x, y)
    yield +t = d
    yield +z by t: x * exp(r - r2)
  }
  t1 = row_scale(p, c)
  return t1, q
}
