# The second operator's argument is replaced by the first one's expression; nothing is simplified.
graph(a: [M,K]) {
  t = a * 2
  y = exp(t)
  return y
}
# after
graph(a: [M,K]) {
  y = exp(a * 2)
  return y
}
