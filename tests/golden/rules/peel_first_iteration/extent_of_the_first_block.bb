# Only the loop knows the extent of the first block.
graph(X: N[M,N] = port, VT: L,N[L,N]) {
  E = map N (x in !X) {
    e = square(x)
    yield e
  }
  O = map L (E2 = !E, v in !VT) {
    o = map N (e_1 in !E2) {
      d = row_sum(e_1)
      yield +d
    }
    z = o * 2 over [M,L]
    w = map N (b in !v) {
      t = row_sum(b)
      yield +t
    }
    y = col_scale(z, w)
    yield y
  }
  return O
}
# because: x * 2 spreads a value over a block of L
