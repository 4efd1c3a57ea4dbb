# `mul` of Table 1 is not an elementwise operator here: the paper's step counts rest on that.
graph(a: [M,K], b: [M,K]) {
  t = square(a)
  y = mul(t, b)
  z = y + 1
  return z
}
