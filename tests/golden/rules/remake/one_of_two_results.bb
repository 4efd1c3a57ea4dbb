# What the reader needs of the map is made again, its sum is not.
graph(S: M,N[M,N], a: N[N], X: N[K,N] = port) {
  r, C = map N (x in !X, b in !a) {
    t = row_sum(x)
    d = b * 2
    yield +t
    yield d
  }
  Y = map M (s in !S, C_1 = !C) {
    y = map N (t_1 in !s, c in !C_1) {
      v = t_1 * c over [M,N]
      yield v
    }
    yield y
  }
  return Y, r
}
# after
graph(S: M,N[M,N], a: N[N], X: N[K,N] = port) {
  Y = map M (b = !a, s in !S) {
    C = map N (b_1 in !b) {
      d = b_1 * 2
      yield d
    }
    y = map N (t in !s, c in !C) {
      v = t * c over [M,N]
      yield v
    }
    yield y
  }
  r = map N (x in !X) {
    t_1 = row_sum(x)
    yield +t_1
  }
  return Y, r
}
