# The scores are made for the sum of each row and for its maximum.
graph(X: M,K[M,K], W: N,K[N,K]) {
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
  l = map M (s_1 in !S) {
    t = map N (s_2 in !s_1) {
      r = row_sum(s_2)
      yield +r
    }
    yield t
  }
  m = map M (s_3 in !S) {
    u = map N (s_4 in !s_3) {
      v = row_max(s_4)
      yield max v
    }
    yield u
  }
  return l, m
}
# after
graph(X: M,K[M,K], W: N,K[N,K]) {
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
  l = map M (s_1 in !S) {
    t = map N (s_2 in !s_1) {
      r = row_sum(s_2)
      yield +r
    }
    yield t
  }
  S_1 = map M (x_2 in !X, w_2 = !W) {
    s_3 = map N (x_3 = !x_2, w_3 in !w_2) {
      p_1 = map K (a_1 in !x_3, b_1 in !w_3) {
        d_1 = dot(a_1, b_1)
        yield +d_1
      }
      yield p_1
    }
    yield s_3
  }
  m = map M (s_4 in !S_1) {
    u = map N (s_5 in !s_4) {
      v = row_max(s_5)
      yield max v
    }
    yield u
  }
  return l, m
}
