# The first operator's result is a result of the program.
graph(a: [M,K]) {
  t = square(a)
  y = t + 1
  return y, t
}
# because: t is a result of the program: it must still be computed
