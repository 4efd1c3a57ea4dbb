# A mask that is an input does not make the scores small.
graph(X: M,K[M,K], W: N,K[N,K], I: M,N[M,N]) {
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
  Z = map M (i in !I, s_1 in !S) {
    z = map N (i_1 in !i, s_2 in !s_1) {
      f = where(i_1 > 0, s_2, 0)
      yield f
    }
    yield z
  }
  l = map M (s_3 in !Z) {
    t = map N (s_4 in !s_3) {
      r = row_sum(s_4)
      yield +r
    }
    yield t
  }
  m = map M (s_5 in !Z) {
    u = map N (s_6 in !s_5) {
      v = row_max(s_6)
      yield max v
    }
    yield u
  }
  return l, m
}
# after
graph(X: M,K[M,K], W: N,K[N,K], I: M,N[M,N]) {
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
  Z = map M (i in !I, s_1 in !S) {
    z = map N (i_1 in !i, s_2 in !s_1) {
      f = where(i_1 > 0, s_2, 0)
      yield f
    }
    yield z
  }
  l = map M (s_3 in !Z) {
    t = map N (s_4 in !s_3) {
      r = row_sum(s_4)
      yield +r
    }
    yield t
  }
  Z_1 = map M (i_2 in !I, s_5 in !S) {
    z_1 = map N (i_3 in !i_2, s_6 in !s_5) {
      f_1 = where(i_3 > 0, s_6, 0)
      yield f_1
    }
    yield z_1
  }
  m = map M (s_7 in !Z_1) {
    u = map N (s_8 in !s_7) {
      v = row_max(s_8)
      yield max v
    }
    yield u
  }
  return l, m
}
