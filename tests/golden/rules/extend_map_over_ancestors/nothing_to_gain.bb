# The maps share no list: inside, no rule would take them.
graph(X: N[M,N] = port, Z: N[M,N] = port, VT: L,N[L,N]) {
  s = map N (x in !X) {
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
# because: it would meet no map inside: they share no list
