# A slope per head and two index vectors: three operands, all of fewer axes.
graph(S: B,H,M,N[M,N] = port, slope: H[], I: M[M] = index(M), J: N[N] = index(N)) {
  A = map H (l in !slope, j = !J, i = !I) {
    a = map M (l_1 = l, j_1 = !j, i_1 in !i) {
      b = map N (l_2 = l_1, j_2 in !j_1, i_2 = i_1) {
        e = l_2 * (j_2 - i_2) over [M,N]
        yield e
      }
      yield b
    }
    yield a
  }
  Y = map B (s in !S, A_1 = !A) {
    y = map H (t in !s, a_1 in !A_1) {
      z = map M (u in !t, b_1 in !a_1) {
        p = map N (v in !u, e_1 in !b_1) {
          q = add(v, e_1)
          yield q
        }
        yield p
      }
      yield z
    }
    yield y
  }
  return Y
}
# after
graph(S: B,H,M,N[M,N] = port, slope: H[], I: M[M] = index(M), J: N[N] = index(N)) {
  Y = map B (l = !slope, j = !J, i = !I, s in !S) {
    A = map H (l_1 in !l, j_1 = !j, i_1 = !i) {
      a = map M (l_2 = l_1, j_2 = !j_1, i_2 in !i_1) {
        b = map N (l_3 = l_2, j_3 in !j_2, i_3 = i_2) {
          e = l_3 * (j_3 - i_3) over [M,N]
          yield e
        }
        yield b
      }
      yield a
    }
    y = map H (t in !s, a_1 in !A) {
      z = map M (u in !t, b_1 in !a_1) {
        p = map N (v in !u, e_1 in !b_1) {
          q = add(v, e_1)
          yield q
        }
        yield p
      }
      yield z
    }
    yield y
  }
  return Y
}
