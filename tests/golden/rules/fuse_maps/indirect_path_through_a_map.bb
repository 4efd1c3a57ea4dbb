# The second map also reads a list that a map over another dim makes of the first one's.
graph(X: H,G[M] = port) {
  E = map H (x in !X) {
    e = map G (b in !x) {
      c = square(b)
      yield c
    }
    yield e
  }
  T = transpose G,H[M] (!E)
  S = map G (x_1 in !T) {
    s = map H (b_1 in !x_1) {
      c_1 = b_1 + 1
      yield c_1
    }
    yield s
  }
  U = transpose H,G[M] (!S)
  Y = map H (e_1 in !E, u in !U) {
    y = map G (a in !e_1, b_2 in !u) {
      c_2 = mul(a, b_2)
      yield c_2
    }
    yield y
  }
  return Y
}
# because: Y also depends on E through transpose: fusing them would make a cycle
