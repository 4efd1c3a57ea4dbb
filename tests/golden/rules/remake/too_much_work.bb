# Six functions of eight plain ones each, and one plain: 49.
graph(S: M,N[M,N], a: N[N]) {
  C = map N (b in !a) {
    d = -log(tanh(erf(sqrt(sigmoid(log(b))))))
    yield d
  }
  Y = map M (s in !S, C_1 = !C) {
    y = map N (t in !s, c in !C_1) {
      v = t * c over [M,N]
      yield v
    }
    yield y
  }
  return Y
}
# because: an element of C takes more than 48 operations: too many to do again for every reader
