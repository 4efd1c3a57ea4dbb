# The row operator could not leave: its vector changes with K.
graph(X: K[M,K] = port, C: K[M] = port, G: K[K] = port, Y: K[N,K] = port) {
  p = map K (x in !X, c in !C, g in !G, y in !Y) {
    s = row_scale(x, c)
    t = col_scale(s, g)
    d = dot(t, y)
    yield +d
  }
  return p
}
# because: c, the vector of row_scale, changes with K
