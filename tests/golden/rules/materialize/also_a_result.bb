# One of the values is a result too: it is computed with the others, and handed on.
graph(x: M,K[M,K]) {
  y, m = map M (x_1 in !x) {
    s = map K (a in !x_1) {
      t = row_sum(a)
      yield +t
    }
    c = s * (1 / |K|)
    z = map K (a_1 in !x_1, c_1 = c) {
      u = a_1 - c_1 over [M,K]
      yield u
    }
    yield z
    yield c
  }
  return y, m
}
# after
graph(x: M,K[M,K]) {
  c = map M (x_1 in !x) {
    s = map K (a in !x_1) {
      t = row_sum(a)
      yield +t
    }
    c_1 = s * (1 / |K|)
    yield c_1
  }
  y, m = map M (x_2 in !x, c_2 in !c) {
    z = map K (a_1 in !x_2, c_3 = c_2) {
      u = a_1 - c_3 over [M,K]
      yield u
    }
    yield z
    yield c_2
  }
  return y, m
}
