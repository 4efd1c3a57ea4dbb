# Its square, and one factor in each operand.
graph(X: K[M,K] = port, Y: K[N,K] = port) {
  s = map K (x in !X) {
    t = row_sum(x)
    u = row_sum(t)
    yield +u
  }
  p = map K (x_1 in !X, c = s, y in !Y) {
    r = x_1 * c over [M,K]
    u_1 = y * c over [N,K]
    d = dot(r, u_1)
    yield +d
  }
  return p
}
# because: c stays in K<x * y x * y dot>: d is no multiple of it: a value multiplies it by itself
