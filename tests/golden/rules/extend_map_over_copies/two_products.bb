# Two products read what one map makes: the first takes in a copy.
graph(X: M[N,M], W: K,M[K,M], V: L,M[L,M]) {
  E, F = map M (x in !X) {
    e = exp(x)
    f = abs(x)
    yield e
    yield f
  }
  A = map K (e_A = !E, w_A in !W) {
    a_A = map M (e2_A in !e_A, w2_A in !w_A) {
      d_A = dot(e2_A, w2_A)
      yield +d_A
    }
    yield a_A
  }
  B = map L (e_B = !F, w_B in !V) {
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
  A = map K (X_1 = !X, w_A in !W) {
    E = map M (x in !X_1) {
      e = exp(x)
      yield e
    }
    a_A = map M (e2_A in !E, w2_A in !w_A) {
      d_A = dot(e2_A, w2_A)
      yield +d_A
    }
    yield a_A
  }
  F = map M (x_1 in !X) {
    f = abs(x_1)
    yield f
  }
  B = map L (e_B = !F, w_B in !V) {
    a_B = map M (e2_B in !e_B, w2_B in !w_B) {
      d_B = dot(e2_B, w2_B)
      yield +d_B
    }
    yield a_B
  }
  return A, B
}
