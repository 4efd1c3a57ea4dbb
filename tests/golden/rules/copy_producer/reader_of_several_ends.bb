# The exponentials themselves have two ends: they are copied first, and the scores when they have one.
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
  E = map M (s_1 in !S) {
    e = map N (s_2 in !s_1) {
      f = exp(s_2)
      yield f
    }
    yield e
  }
  l = map M (s_3 in !E) {
    t = map N (s_4 in !s_3) {
      r = row_sum(s_4)
      yield +r
    }
    yield t
  }
  m = map M (s_5 in !S) {
    u = map N (s_6 in !s_5) {
      v = row_max(s_6)
      yield max v
    }
    yield u
  }
  n = map M (s_7 in !E) {
    o = map N (s_8 in !s_7) {
      q = row_min(s_8)
      yield min q
    }
    yield o
  }
  return l, m, n
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
  E = map M (s_1 in !S) {
    e = map N (s_2 in !s_1) {
      f = exp(s_2)
      yield f
    }
    yield e
  }
  l = map M (s_3 in !E) {
    t = map N (s_4 in !s_3) {
      r = row_sum(s_4)
      yield +r
    }
    yield t
  }
  m = map M (s_5 in !S) {
    u = map N (s_6 in !s_5) {
      v = row_max(s_6)
      yield max v
    }
    yield u
  }
  E_1 = map M (s_7 in !S) {
    e_1 = map N (s_8 in !s_7) {
      f_1 = exp(s_8)
      yield f_1
    }
    yield e_1
  }
  n = map M (s_9 in !E_1) {
    o = map N (s_10 in !s_9) {
      q = row_min(s_10)
      yield min q
    }
    yield o
  }
  return l, m, n
}
