# A decay from index vectors: its safe form is a pair, and readers would carry the exponent along.
graph(S: H,M,N[M,N] = port, I: M[M] = index(M), J: N[N] = index(N)) {
  C = map M (j = !J, i in !I) {
    c = map N (b in !j, a = i) {
      d = exp(b - a) over [M,N]
      yield d
    }
    yield c
  }
  Y = map H (s in !S, C_1 = !C) {
    y = map M (t in !s, c_1 in !C_1) {
      z = map N (u in !t, d_1 in !c_1) {
        v = mul(u, d_1)
        yield v
      }
      yield z
    }
    yield y
  }
  return Y
}
# because: C holds an exponential, whose safe form is a pair
