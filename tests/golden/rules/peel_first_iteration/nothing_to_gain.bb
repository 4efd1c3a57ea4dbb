# No map outside runs over the dim of an inner one.
graph(X: H[M,H] = port, Z: N[M,N] = port, VT: L,N[L,N]) {
  s = map H (x in !X) {
    t = row_sum(x)
    yield +t
  }
  O = map L (E2 = !Z, v in !VT, c = s) {
    o = map N (e in !E2, w in !v) {
      d = dot(e, w)
      yield +d
    }
    z = row_scale(o, c)
    yield z
  }
  return O
}
# because: no map here would meet one of its iteration 0
