# What is added to each of a row is counted; what is added where a mask holds is summed.
graph(X: K[M,K] = port, G: K[M,K] = port, Y: K[N,K] = port) {
  s = map K (x in !X) {
    t = row_sum(x)
    yield +t
  }
  p, q = map K (x_1 in !X, c = s, g in !G) {
    r = row_shift(x_1, c)
    t_1 = where(g > 0, r, 0)
    a = row_sum(t_1)
    b = row_sum(r)
    yield +a
    yield +b
  }
  return p, q
}
# after
graph(X: K[M,K] = port, G: K[M,K] = port, Y: K[N,K] = port) {
  t1, q, p = map K (g in !G, x in !X) {
    t = where(g > 0, x, 0)
    a = row_sum(t)
    b = row_sum(x)
    t_1 = where(g > 0, 1, 0)
    a_1 = row_sum(t_1)
    yield +a
    yield +b
    yield +a_1
  }
  s = map K (x_1 in !X) {
    t_2 = row_sum(x_1)
    yield +t_2
  }
  t2 = mul(p, s)
  t3 = add(t1, t2)
  t4 = |K| * s
  t5 = add(q, t4)
  return t3, t5
}
