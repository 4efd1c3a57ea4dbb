# A relabeled list is another list: its map runs over M', and every row of Gram reads all of it.
graph(X: M,K[M,K]) {
  T = map M (x in !X) {
    t = map K (b in !x) {
      c = b * 2
      yield c
    }
    yield t
  }
  U = relabel M -> M' (!T)
  G = map M (t_1 in !T, u = !U) {
    g = map M' (t_2 = !t_1, v in !u) {
      p = map K (a in !t_2, b_1 in !v) {
        d = dot(a, b_1)
        yield +d
      }
      yield p
    }
    yield g
  }
  return G
}
# because: G also depends on T through relabel: fusing them would make a cycle
