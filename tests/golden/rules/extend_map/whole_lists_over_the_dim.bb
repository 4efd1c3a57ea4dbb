# What would be pulled in reads a whole list over the map's dim.
graph(X: N[M,N] = port, VT: L,N[L,N] = port, WT: L[M] = port) {
  E = map N (x in !X) {
    e = square(x)
    yield e
  }
  s = reduce + L (!WT)
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
# because: reduce + L reads or makes lists over L
