# What stands between is copied with it: the sum, and the list that is scaled by it.
graph(X: M[N,M], W: K,M[K,M], V: L,M[L,M]) {
  E = map M (x in !X) {
    e = exp(x)
    yield e
  }
  S = map M (e_1 in !E) {
    s = e_1 * 2
    yield s
  }
  A = map K (e_A = !S, w_A in !W) {
    a_A = map M (e2_A in !e_A, w2_A in !w_A) {
      d_A = dot(e2_A, w2_A)
      yield +d_A
    }
    yield a_A
  }
  B = map L (e_B = !E, w_B in !V) {
    a_B = map M (e2_B in !e_B, w2_B in !w_B) {
      d_B = dot(e2_B, w2_B)
      yield +d_B
    }
    yield a_B
  }
  return A, B
}
# after
graph(X: M[N,M], W: K,M[K,M], V: L,M[L,M]) {
  E = map M (x in !X) {
    e = exp(x)
    yield e
  }
  S = map M (e_1 in !E) {
    s = e_1 * 2
    yield s
  }
  A = map K (e_A = !S, w_A in !W) {
    a_A = map M (e2_A in !e_A, w2_A in !w_A) {
      d_A = dot(e2_A, w2_A)
      yield +d_A
    }
    yield a_A
  }
  B = map L (X_1 = !X, w_B in !V) {
    E_1 = map M (x_1 in !X_1) {
      e_2 = exp(x_1)
      yield e_2
    }
    a_B = map M (e2_B in !E_1, w2_B in !w_B) {
      d_B = dot(e2_B, w2_B)
      yield +d_B
    }
    yield a_B
  }
  return A, B
}
