# Blocks of H have one element, and the operator drops that axis: inside the loop it is another.
graph(X: N[H,N], S: H[H]) {
  C = map N (x in !X) {
    d = x * 2 over [N]
    yield d
  }
  Y = map H (s in !S, C_1 = !C) {
    y = map N (t = s, c in !C_1) {
      v = t * c over [H,N]
      yield v
    }
    yield y
  }
  return Y
}
# because: C is made of X, all of which would enter a loop over H, one of its axes
