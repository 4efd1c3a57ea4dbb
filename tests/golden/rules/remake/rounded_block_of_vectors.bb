# Of items of fewer axes anything may be rounded.
graph(S: H,M[M,N] = port, a: M[M], b: [N]) {
  C = map M (x in !a, y = b) {
    d = x * y over [M,N]
    e = cast float16 (d)
    yield e
  }
  Y = map H (s in !S, C_1 = !C) {
    z = map M (t in !s, c in !C_1) {
      v = add(t, c)
      yield v
    }
    yield z
  }
  return Y
}
# after
graph(S: H,M[M,N] = port, a: M[M], b: [N]) {
  Y = map H (x = !a, y = b, s in !S) {
    C = map M (x_1 in !x, y_1 = y) {
      d = x_1 * y_1 over [M,N]
      e = cast float16 (d)
      yield e
    }
    z = map M (t in !s, c in !C) {
      v = add(t, c)
      yield v
    }
    yield z
  }
  return Y
}
