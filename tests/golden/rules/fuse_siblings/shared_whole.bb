# Two maps share a value that both read whole.
graph(X: H[M] = port, Z: H[M] = port, c: [M]) {
  A = map H (x in !X, v = c) {
    a = mul(x, v)
    yield a
  }
  B = map H (z in !Z, v_1 = c) {
    b = add(z, v_1)
    yield +b
  }
  return A, B
}
# after
graph(X: H[M] = port, Z: H[M] = port, c: [M]) {
  A, B = map H (x in !X, v = c, z in !Z) {
    a = mul(x, v)
    b = add(z, v)
    yield a
    yield +b
  }
  return A, B
}
