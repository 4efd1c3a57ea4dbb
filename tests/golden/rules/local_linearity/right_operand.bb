# The scaled rows are columns of the product.
graph(X: K[M,K] = port, c: [M], Y: K[N,K] = port) {
  p = map K (x in !X, v = c, y in !Y) {
    s = row_scale(x, v)
    d = dot(y, s)
    yield +d
  }
  return p
}
# because: s is the right operand of a dot: its rows are columns of the product
