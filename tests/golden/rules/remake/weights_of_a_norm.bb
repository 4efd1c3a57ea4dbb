# Weights are stored less 1: a vector made of a vector, for every row of blocks.
graph(X: M,K[M,K], g: K[K]) {
  G = map K (a in !g) {
    b = a + 1
    yield b
  }
  Y = map M (x in !X, G_1 = !G) {
    y = map K (z in !x, b_1 in !G_1) {
      c = col_scale(z, b_1)
      yield c
    }
    yield y
  }
  return Y
}
# after
graph(X: M,K[M,K], g: K[K]) {
  Y = map M (a = !g, x in !X) {
    G = map K (a_1 in !a) {
      b = a_1 + 1
      yield b
    }
    y = map K (z in !x, b_1 in !G) {
      c = col_scale(z, b_1)
      yield c
    }
    yield y
  }
  return Y
}
