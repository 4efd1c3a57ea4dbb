# The group goes with the sum: its lead has another port there.
graph(X: K[M,K] = port) {
  s = map K (x in !X) {
    t = row_sum(x)
    yield +t
  }
  e, p, m, q = map K (x_1 in !X, c = s) {
    r = row_scale(x_1, c)
    a = row_sum(r)
    b = row_max(x_1)
    d = row_min(x_1)
    yield r
    yield +a
    yield max t_1 = b
    yield min d by t_1: where(r == r2, x, inf)
  }
  y = map K (e_1 in !e, l = p) {
    z = row_shift(e_1, l)
    yield z
  }
  z_1 = add(m, q)
  return y, z_1
}
# after
graph(X: K[M,K] = port) {
  s = map K (x in !X) {
    t = row_sum(x)
    yield +t
  }
  e = map K (x_1 in !X, c = s) {
    r = row_scale(x_1, c)
    yield r
  }
  m, q, p = map K (x_2 in !X) {
    b = row_max(x_2)
    d = row_min(x_2)
    a = row_sum(x_2)
    yield max t_1 = b
    yield min d by t_1: where(r == r2, x, inf)
    yield +a
  }
  t1 = mul(p, s)
  y = map K (e_1 in !e, l = t1) {
    z = row_shift(e_1, l)
    yield z
  }
  z_1 = add(m, q)
  return y, z_1
}
