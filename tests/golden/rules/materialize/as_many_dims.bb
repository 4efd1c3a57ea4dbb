# A sum of outer products has as many dims as each of the lists it comes from.
graph(x: M,K[M,K], v: N,K[K]) {
  y = map M (x_1 in !x, v_1 = !v) {
    z = map N (x_2 = !x_1, v_2 in !v_1) {
      s = map K (a in !x_2, b in !v_2) {
        t = row_sum(a)
        f = row_sum(b)
        o = t * f over [M]
        yield +o
      }
      u = exp(s)
      yield u
    }
    yield z
  }
  return y
}
# because: s has as many dims as what it is computed from
# because: t is made of sums of single blocks of K
# because: f is made of sums of single blocks of K
