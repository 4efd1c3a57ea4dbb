# No row operator comes before: the weight stays with the tile of X.
graph(X: K[M,K] = port, G: K[K] = port, Y: K[N,K] = port) {
  p = map K (x in !X, g in !G, y in !Y) {
    t = col_scale(x, g)
    d = dot(t, y)
    yield +d
  }
  return p
}
# because: no operator on rows waits behind col_scale
