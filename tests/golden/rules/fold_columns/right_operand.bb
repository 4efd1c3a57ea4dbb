# Columns of the right operand are summed as well, but its rows are columns of the product.
graph(X: K[M,K] = port, c: [M], G: K[K] = port, Y: K[N,K] = port) {
  p = map K (x in !X, v = c, g in !G, y in !Y) {
    s = row_scale(x, v)
    t = col_scale(s, g)
    d = dot(y, t)
    yield +d
  }
  return p
}
# because: t is the right operand of a dot: its rows are columns of the product
