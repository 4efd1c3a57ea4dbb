# What stands between is copied with it: the map reads it too.
graph(X: M[N,M], W: K,M[K,M]) {
  E = map M (x in !X) {
    e = exp(x)
    yield e
  }
  S = map M (e_1 in !E) {
    s = e_1 * 2
    yield s
  }
  A = map K (e_2 = !E, s_1 = !S, w in !W) {
    a = map M (e_3 in !e_2, s_2 in !s_1, w_1 in !w) {
      m = mul(e_3, s_2)
      d = dot(m, w_1)
      yield +d
    }
    yield a
  }
  B = map M (g in !E) {
    b = row_sum(g)
    yield +b
  }
  return A, B
}
# after
graph(X: M[N,M], W: K,M[K,M]) {
  A = map K (X_1 = !X, w in !W) {
    E = map M (x in !X_1) {
      e = exp(x)
      yield e
    }
    S = map M (e_1 in !E) {
      s = e_1 * 2
      yield s
    }
    a = map M (e_2 in !E, s_1 in !S, w_1 in !w) {
      m = mul(e_2, s_1)
      d = dot(m, w_1)
      yield +d
    }
    yield a
  }
  E_1 = map M (x_1 in !X) {
    e_3 = exp(x_1)
    yield e_3
  }
  B = map M (g in !E_1) {
    b = row_sum(g)
    yield +b
  }
  return A, B
}
