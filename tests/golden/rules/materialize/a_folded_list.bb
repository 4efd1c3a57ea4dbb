# The sum is an operator of its own, over a list that the map makes.
graph(x: M,K[M,K], w: N,K[N,K]) {
  y = map M (x_1 in !x, w_1 = !w) {
    h = map K (a in !x_1) {
      q = square(a)
      t = row_sum(q)
      yield t
    }
    s = reduce + K (!h)
    z = map N (x_2 = !x_1, w_2 in !w_1, s_1 = s) {
      p = map K (a_1 in !x_2, b in !w_2) {
        d = dot(a_1, b)
        yield +d
      }
      u = row_scale(p, s_1)
      yield u
    }
    yield z
  }
  return y
}
# after
graph(x: M,K[M,K], w: N,K[N,K]) {
  s = map M (x_1 in !x) {
    h = map K (a in !x_1) {
      q = square(a)
      t = row_sum(q)
      yield t
    }
    s_1 = reduce + K (!h)
    yield s_1
  }
  y = map M (x_2 in !x, w_1 = !w, s_2 in !s) {
    z = map N (x_3 = !x_2, w_2 in !w_1, s_3 = s_2) {
      p = map K (a_1 in !x_3, b in !w_2) {
        d = dot(a_1, b)
        yield +d
      }
      u = row_scale(p, s_3)
      yield u
    }
    yield z
  }
  return y
}
