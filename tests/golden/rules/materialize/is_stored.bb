# The sums are results, and nothing else reads them.
graph(x: M,K[M,K]) {
  y = map M (x_1 in !x) {
    s = map K (a in !x_1) {
      t = row_sum(a)
      yield +t
    }
    c = s * (1 / |K|)
    yield c
  }
  return y
}
# because: c is stored already, and its map computes nothing else
