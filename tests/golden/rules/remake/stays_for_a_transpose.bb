# A reader that is no map takes the list as it is.
graph(X: K,L[K,L] = port, g: K[K] = port) {
  S, r = map K (x in !X, h in !g) {
    s, t = map L (y in !x, k = h) {
      u = row_scale(y, k)
      v = row_sum(u)
      yield u
      yield +v
    }
    yield s
    yield t
  }
  Y = map K (s_1 in !S, r_1 in !r) {
    y_1 = map L (s_2 in !s_1, r_2 = r_1) {
      z = row_scale(s_2, r_2)
      yield z
    }
    yield y_1
  }
  T = transpose L,K[L,K] (!S)
  return Y, T
}
# because: S stays for transpose, since transpose is no map: it reads S as it is
