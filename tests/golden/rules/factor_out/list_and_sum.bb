# The list stays, in a map of its own: the sum is waited for by its reader.
graph(X: K[M,K] = port) {
  s = map K (x in !X) {
    t = row_sum(x)
    yield +t
  }
  e, l = map K (x_1 in !X, c = s) {
    r = row_scale(x_1, c)
    q = square(x_1)
    w = row_scale(q, c)
    a = row_sum(w)
    yield r
    yield +a
  }
  y = map K (e_1 in !e, l_1 = l) {
    z = row_shift(e_1, l_1)
    yield z
  }
  return y
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
  l = map K (x_2 in !X) {
    q = square(x_2)
    a = row_sum(q)
    yield +a
  }
  t1 = mul(l, s)
  y = map K (e_1 in !e, l_1 = t1) {
    z = row_shift(e_1, l_1)
    yield z
  }
  return y
}
