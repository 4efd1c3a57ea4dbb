# A product that sums over a dim of the scores is an end, and stored: what is made of it is as small.
graph(X: M,K[M,K], W: N,K[N,K], V: L,N[L,N]) {
  S = map M (x in !X, w = !W) {
    s = map N (x_1 = !x, w_1 in !w) {
      p = map K (a in !x_1, b in !w_1) {
        d = dot(a, b)
        yield +d
      }
      yield p
    }
    yield s
  }
  O = map M (s_1 in !S, v = !V) {
    o = map L (s_2 = !s_1, v_1 in !v) {
      c = map N (s_3 in !s_2, v_2 in !v_1) {
        g = dot(s_3, v_2)
        yield +g
      }
      yield c
    }
    yield o
  }
  Z = map M (o_1 in !O) {
    z = map L (o_2 in !o_1) {
      y = exp(o_2)
      yield y
    }
    yield z
  }
  l = map M (s_4 in !Z) {
    t = map L (s_5 in !s_4) {
      r = row_sum(s_5)
      yield +r
    }
    yield t
  }
  m = map M (s_6 in !Z) {
    u = map L (s_7 in !s_6) {
      v_3 = row_max(s_7)
      yield max v_3
    }
    yield u
  }
  return l, m
}
# because: M<L<exp(x)>> is no larger than an array that it is made from
