# Operands of both, each once, in order of first use.
graph(a: [M,K], b: [M,K], c: [M,K]) {
  t = a - b
  y = c * t + a
  return y
}
# after
graph(a: [M,K], b: [M,K], c: [M,K]) {
  y = c * (a - b) + a
  return y
}
