# Two readers that serve one end share a copy; the other end keeps the old one.
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
  G = map M (s_3 in !S, e_1 in !E) {
    g = map N (s_4 in !s_3, e_2 in !e_1) {
      h = mul(s_4, e_2)
      yield h
    }
    yield g
  }
  l = map M (g_1 in !G) {
    t = map N (g_2 in !g_1) {
      r = row_sum(g_2)
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
  E = map M (s_1 in !S) {
    e = map N (s_2 in !s_1) {
      f = exp(s_2)
      yield f
    }
    yield e
  }
  G = map M (s_3 in !S, e_1 in !E) {
    g = map N (s_4 in !s_3, e_2 in !e_1) {
      h = mul(s_4, e_2)
      yield h
    }
    yield g
  }
  l = map M (g_1 in !G) {
    t = map N (g_2 in !g_1) {
      r = row_sum(g_2)
      yield +r
    }
    yield t
  }
  S_1 = map M (x_2 in !X, w_2 = !W) {
    s_5 = map N (x_3 = !x_2, w_3 in !w_2) {
      p_1 = map K (a_1 in !x_3, b_1 in !w_3) {
        d_1 = dot(a_1, b_1)
        yield +d_1
      }
      yield p_1
    }
    yield s_5
  }
  m = map M (s_6 in !S_1) {
    u = map N (s_7 in !s_6) {
      v = row_max(s_7)
      yield max v
    }
    yield u
  }
  return l, m
}
