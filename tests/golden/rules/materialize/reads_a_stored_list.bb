# What the slice reads may be made by other nodes, if these stand outside of the maps.
graph(x: M,K[M,K], w: N,K[N,K]) {
  h = map M (x_1 in !x) {
    h_1 = map K (a in !x_1) {
      e = exp(a)
      yield e
    }
    yield h_1
  }
  y = map M (x_2 in !h, w_1 = !w) {
    z = map N (x_3 = !x_2, w_2 in !w_1) {
      p, s = map K (a_1 in !x_3, b in !w_2) {
        d = dot(a_1, b)
        t = row_max(a_1)
        yield +d
        yield max t
      }
      u = row_scale(p, s)
      yield u
    }
    yield z
  }
  return y, h
}
# after
graph(x: M,K[M,K], w: N,K[N,K]) {
  h = map M (x_1 in !x) {
    h_1 = map K (a in !x_1) {
      e = exp(a)
      yield e
    }
    yield h_1
  }
  s = map M (x_2 in !h) {
    s_1 = map K (a_1 in !x_2) {
      t = row_max(a_1)
      yield max t
    }
    yield s_1
  }
  y = map M (x_3 in !h, w_1 = !w, s_2 in !s) {
    z = map N (x_4 = !x_3, w_2 in !w_1, s_3 = s_2) {
      p = map K (a_2 in !x_4, b in !w_2) {
        d = dot(a_2, b)
        yield +d
      }
      u = row_scale(p, s_3)
      yield u
    }
    yield z
  }
  return y, h
}
