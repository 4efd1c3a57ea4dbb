# Every iteration over H reads all of the mask, which comes from index vectors.
graph(S: H,M,N[M,N] = port, I: M[M] = index(M), J: N[N] = index(N)) {
  C = map M (i in !I, j = !J) {
    c = map N (a = i, b in !j) {
      d = a >= b over [M,N]
      yield d
    }
    yield c
  }
  Y = map H (C_1 = !C, s in !S) {
    y = map M (c_1 in !C_1, t in !s) {
      z = map N (d_1 in !c_1, u in !t) {
        v = where(d_1, u, 0)
        yield v
      }
      yield z
    }
    yield y
  }
  return Y
}
# after
graph(S: H,M,N[M,N] = port, I: M[M] = index(M), J: N[N] = index(N)) {
  Y = map H (i = !I, j = !J, s in !S) {
    C = map M (i_1 in !i, j_1 = !j) {
      c = map N (a = i_1, b in !j_1) {
        d = a >= b over [M,N]
        yield d
      }
      yield c
    }
    y = map M (c_1 in !C, t in !s) {
      z = map N (d_1 in !c_1, u in !t) {
        v = where(d_1, u, 0)
        yield v
      }
      yield z
    }
    yield y
  }
  return Y
}
