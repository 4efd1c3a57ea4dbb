graph(Q: M,D[M,D], KT: N,D[N,D], VT: L,N[L,N]) {
  O = map M (q in !Q, kt = !KT, vt = !VT) {
    o = map L (q_1 = !q, kt_1 = !kt, v in !vt) {
      t1, t2, t3 = map N (q2 = !q_1, k in !kt_1, b in !v) {
        s0 = map D (a in !q2, b_1 in !k) {
          d = dot(a, b_1)
          yield +d
        }
        t4 = s0 * |D| ** -0.5
        t5 = row_max(t4)
        t6 = sub0(t4, t5) over [M,N]
        t7 = exp(t6)
        t8 = dot(t7, b)
        t9 = row_sum(t7)
        yield max t = t5
        yield +t8 by t: x * exp(sub0(r, r2))
        yield +t9 by t: x * exp(sub0(r, r2))
      }
      t10 = reciprocal(t3)
      t11 = row_scale(t2, t10)
      yield t11
    }
    yield o
  }
  return O
}
