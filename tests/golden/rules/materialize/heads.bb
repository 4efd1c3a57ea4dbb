# A rate of two dims makes two maps.
graph(x: B,M,K[M,K], w: N,K[N,K]) {
  y = map B (x_1 in !x, w_1 = !w) {
    y_1 = map M (x_2 in !x_1, w_2 = !w_1) {
      z = map N (x_3 = !x_2, w_3 in !w_2) {
        p, s = map K (a in !x_3, b in !w_3) {
          d = dot(a, b)
          q = square(a)
          t = row_sum(q)
          yield +d
          yield +t
        }
        u = row_scale(p, s)
        yield u
      }
      yield z
    }
    yield y_1
  }
  return y
}
# after
graph(x: B,M,K[M,K], w: N,K[N,K]) {
  s = map B (x_1 in !x) {
    s_1 = map M (x_2 in !x_1) {
      s_2 = map K (a in !x_2) {
        q = square(a)
        t = row_sum(q)
        yield +t
      }
      yield s_2
    }
    yield s_1
  }
  y = map B (x_3 in !x, w_1 = !w, s_3 in !s) {
    y_1 = map M (x_4 in !x_3, w_2 = !w_1, s_4 in !s_3) {
      z = map N (x_5 = !x_4, w_3 in !w_2, s_5 = s_4) {
        p = map K (a_1 in !x_5, b in !w_3) {
          d = dot(a_1, b)
          yield +d
        }
        u = row_scale(p, s_5)
        yield u
      }
      yield z
    }
    yield y_1
  }
  return y
}
