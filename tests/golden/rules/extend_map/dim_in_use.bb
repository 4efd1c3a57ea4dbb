# What would be pulled in runs over the map's own dim.
graph(X: N[M,N] = port, VT: L,N[L,N] = port, WT: L[M,L] = port) {
  E = map N (x in !X) {
    e = square(x)
    yield e
  }
  s = map L (w in !WT) {
    t = row_sum(w)
    yield +t
  }
  O = map L (e_1 = !E, v in !VT, s2 = s) {
    z = map N (a in !e_1, b in !v) {
      d = dot(a, b)
      yield +d
    }
    y = row_scale(z, s2)
    yield y
  }
  return O
}
# because: L<row_sum> runs over L itself
