# E is a result, and stored anyway; F is not, and B takes in a copy of what makes it.
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
  return A, B, E
}
# after
graph(X: M[N,M], W: K,M[K,M], V: L,M[L,M]) {
  E = map M (x in !X) {
    e = exp(x)
    yield e
  }
  A = map K (e_A = !E, w_A in !W) {
    a_A = map M (e2_A in !e_A, w2_A in !w_A) {
      d_A = dot(e2_A, w2_A)
      yield +d_A
    }
    yield a_A
  }
  B = map L (X_1 = !X, w_B in !V) {
    F = map M (x_1 in !X_1) {
      f = abs(x_1)
      yield f
    }
    a_B = map M (e2_B in !F, w2_B in !w_B) {
      d_B = dot(e2_B, w2_B)
      yield +d_B
    }
    yield a_B
  }
  return A, B, E
}
