# Two matmuls read the shifted list: moving the operator past one would leave the other without.
graph(X: K[M,K] = port, c: [M], YT: N,K[N,K], VT: N,K[N,K]) {
  S = map K (x in !X, v = c) {
    s = row_shift(x, v)
    yield s
  }
  O = map N (S2 = !S, y in !YT) {
    p = map K (a in !S2, b in !y) {
      d = dot(a, b)
      yield d
    }
    r = reduce + K (!p)
    yield r
  }
  O2 = map N (S2_1 = !S, y_1 in !VT) {
    p_1 = map K (a_1 in !S2_1, b_1 in !y_1) {
      d_1 = dot(a_1, b_1)
      yield d_1
    }
    r_1 = reduce + K (!p_1)
    yield r_1
  }
  return O, O2
}
# because: S is also read by N<K<dot> reduce + K>
# because: S is also read by N<K<dot> reduce + K>
# wrong
graph(X: K[M,K] = port, c: [M], YT: N,K[N,K], VT: N,K[N,K]) {
  Z = map N (x2 = !X, y in !YT, v = c) {
    p, t = map K (a in !x2, b in !y) {
      d = dot(a, b)
      q = row_sum(b)
      yield +d
      yield +q
    }
    f = outer(v, t)
    z = add(f, p)
    yield z
  }
  O2 = map N (S2 = !X, y_1 in !VT) {
    p_1 = map K (a_1 in !S2, b_1 in !y_1) {
      d_1 = dot(a_1, b_1)
      yield +d_1
    }
    yield p_1
  }
  return Z, O2
}
