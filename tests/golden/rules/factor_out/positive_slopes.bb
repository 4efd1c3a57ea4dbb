# What the shift is multiplied by has one sign, also where another map made it.
graph(X: K[M,K] = port) {
  s, e = map K (x in !X) {
    t = row_max(x)
    f = exp(x)
    yield max t
    yield f
  }
  p, q = map K (x_1 in !X, c = s, e_1 in !e) {
    r = row_shift(x_1, c)
    u = mul(r, e_1)
    a = row_sum(u)
    v = abs(x_1)
    n = -v
    w = mul(r, n)
    b = row_sum(w)
    yield +a
    yield +b
  }
  return p, q
}
# after
graph(X: K[M,K] = port) {
  s, e = map K (x in !X) {
    t = row_max(x)
    f = exp(x)
    yield max t
    yield f
  }
  t1, t2, p, q = map K (x_1 in !X, e_1 in !e) {
    u = mul(x_1, e_1)
    a = row_sum(u)
    v = abs(x_1)
    n = -v
    w = mul(x_1, n)
    b = row_sum(w)
    a_1 = row_sum(e_1)
    b_1 = row_sum(n)
    yield +a
    yield +b
    yield +a_1
    yield +b_1
  }
  t3 = mul(p, s)
  t4 = add(t1, t3)
  t5 = mul(q, s)
  t6 = add(t2, t5)
  return t4, t6
}
