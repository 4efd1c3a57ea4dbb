# Fusing them would save no pass over anything.
graph(X: H[M] = port, Z: H[M] = port) {
  A = map H (x in !X) {
    a = x * 2
    yield a
  }
  B = map H (z in !Z) {
    b = z + 1
    yield b
  }
  return A, B
}
