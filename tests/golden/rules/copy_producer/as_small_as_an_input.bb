# The squares are as large as what they are made from.
graph(X: M,K[M,K]) {
  S = map M (x in !X) {
    s = map K (a in !x) {
      q = square(a)
      yield q
    }
    yield s
  }
  l = map M (s_1 in !S) {
    t = map K (s_2 in !s_1) {
      r = row_sum(s_2)
      yield +r
    }
    yield t
  }
  m = map M (s_3 in !S) {
    u = map K (s_4 in !s_3) {
      v = row_max(s_4)
      yield max v
    }
    yield u
  }
  return l, m
}
# because: M<K<square(x)>> is no larger than an array that it is made from
