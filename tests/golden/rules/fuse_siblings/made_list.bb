# What they share is made by another node; each keeps its own other operands.
graph(X: H[M] = port, Y: H[M] = port) {
  T = map H (x in !X) {
    t = x * 2
    yield t
  }
  s = reduce + H (!T)
  A = map H (x_1 in !Y, v = s) {
    a = mul(x_1, v)
    yield a
  }
  B = map H (t_1 in !T, v_1 = s) {
    b = mul(t_1, v_1)
    yield b
  }
  return A, B
}
# after
graph(X: H[M] = port, Y: H[M] = port) {
  T = map H (x in !X) {
    t = x * 2
    yield t
  }
  s = reduce + H (!T)
  A, B = map H (x_1 in !Y, v = s, t_1 in !T) {
    a = mul(x_1, v)
    b = mul(t_1, v)
    yield a
    yield b
  }
  return A, B
}
