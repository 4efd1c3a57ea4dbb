# No pulled map runs over a dim of an inner one, so nothing would be fused.
graph(X: D[M,D] = port, VT: L,N[L,N], YT: N[M,N] = port) {
  s = map D (x in !X) {
    t = row_sum(x)
    yield +t
  }
  O = map L (y2 = !YT, v in !VT, s2 = s) {
    z = map N (a in !y2, b in !v) {
      d = dot(a, b)
      yield +d
    }
    y = row_scale(z, s2)
    yield y
  }
  return O
}
# because: no map of the graph would meet one inside it
