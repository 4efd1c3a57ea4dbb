# They share a vector but run over different dims.
graph(X: H[M] = port, Z: G[M] = port, c: [M]) {
  A = map H (x in !X, v = c) {
    a = mul(x, v)
    yield a
  }
  B = map G (z in !Z, v_1 = c) {
    b = add(z, v_1)
    yield b
  }
  return A, B
}
# because: A runs over H and B over G
