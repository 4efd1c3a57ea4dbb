# One reader that reads it twice: still one operator less, though the expression has it twice.
graph(a: [M,K]) {
  t = a * 2
  y = t * t + 1
  return y
}
# after
graph(a: [M,K]) {
  y = a * 2 * (a * 2) + 1
  return y
}
