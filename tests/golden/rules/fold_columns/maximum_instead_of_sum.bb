# A maximum of shifted products is no shifted maximum of them, block by block.
graph(X: K[M,K] = port, c: [M], B: K[K] = port, Y: K[N,K] = port) {
  p = map K (x in !X, v = c, b in !B, y in !Y) {
    s = row_scale(x, v)
    t = col_shift(s, b)
    d = dot(t, y)
    yield max d
  }
  return p
}
# because: the dot of t is not only summed over K
# wrong
graph(X: K[M,K] = port, c: [M], B: K[K] = port, Y: K[N,K] = port) {
  p, r = map K (x in !X, v = c, y in !Y, b in !B) {
    s = row_scale(x, v)
    d = dot(s, y)
    u = col_scale(y, b)
    t = row_sum(u)
    yield max d
    yield +t
  }
  z = col_shift(p, r)
  return z
}
