# Two readers: fusing would compute the first operator twice.
graph(a: [M,K]) {
  t = square(a)
  y = t + 1
  z = t * 2
  return y, z
}
# because: t is also read by x * 2
# because: t is also read by x + 1
