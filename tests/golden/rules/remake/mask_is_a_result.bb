# The mask stays stored since the program returns it; its reader does without.
graph(S: H,M[H,M] = port, a: M[M]) {
  C = map M (b in !a) {
    d = b * 2 > 1
    yield d
  }
  Y = map H (C_1 = !C, s in !S) {
    y = map M (c in !C_1, t in !s) {
      v = where(c, t, 0) over [H,M]
      yield v
    }
    yield y
  }
  return Y, C
}
# after
graph(S: H,M[H,M] = port, a: M[M]) {
  Y = map H (b = !a, s in !S) {
    C = map M (b_1 in !b) {
      d = b_1 * 2 > 1
      yield d
    }
    y = map M (c in !C, t in !s) {
      v = where(c, t, 0) over [H,M]
      yield v
    }
    yield y
  }
  C_1 = map M (b_2 in !a) {
    d_1 = b_2 * 2 > 1
    yield d_1
  }
  return Y, C_1
}
