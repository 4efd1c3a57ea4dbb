# The lead needs the factor, so its member stays with it.
graph(X: K[M,K] = port) {
  s = map K (x in !X) {
    t = row_sum(x)
    yield +t
  }
  p, m, q = map K (x_1 in !X, c = s) {
    r = row_scale(x_1, c)
    a = row_sum(r)
    e = exp(r)
    b = row_max(e)
    d = row_min(x_1)
    yield +a
    yield max t_1 = b
    yield min d by t_1: where(r == r2, x, inf)
  }
  y = add(m, q)
  u = map K (x_2 in !X, y_1 = y) {
    v = row_scale(x_2, y_1)
    yield v
  }
  return p, u
}
# after
graph(X: K[M,K] = port) {
  p = map K (x in !X) {
    a = row_sum(x)
    yield +a
  }
  s = map K (x_1 in !X) {
    t = row_sum(x_1)
    yield +t
  }
  t1 = mul(p, s)
  m, q = map K (x_2 in !X, c = s) {
    r = row_scale(x_2, c)
    e = exp(r)
    b = row_max(e)
    d = row_min(x_2)
    yield max t_1 = b
    yield min d by t_1: where(r == r2, x, inf)
  }
  y = add(m, q)
  u = map K (x_3 in !X, y_1 = y) {
    v = row_scale(x_3, y_1)
    yield v
  }
  return t1, u
}
