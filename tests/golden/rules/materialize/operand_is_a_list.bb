# Two loops read the list that each block of columns makes of the same row.
graph(x: M,K[M,K], w: N,K[N,K], v: N,K[N,K]) {
  y = map M (x_1 in !x, w_1 = !w, v_1 = !v) {
    z = map N (x_2 = !x_1, w_2 in !w_1, v_2 in !v_1) {
      h = map K (a in !x_2) {
        q = square(a)
        yield q
      }
      p = map K (a_1 in !h, b in !w_2) {
        d = dot(a_1, b)
        yield +d
      }
      r = map K (a_2 in !h, b_1 in !v_2) {
        d_1 = dot(a_2, b_1)
        d_2 = exp(d_1)
        yield +d_2
      }
      s = p * r
      yield s
    }
    yield z
  }
  return y
}
# after
graph(x: M,K[M,K], w: N,K[N,K], v: N,K[N,K]) {
  h = map M (x_1 in !x) {
    h_1 = map K (a in !x_1) {
      q = square(a)
      yield q
    }
    yield h_1
  }
  y = map M (h_2 in !h, w_1 = !w, v_1 = !v) {
    z = map N (h_3 = !h_2, w_2 in !w_1, v_2 in !v_1) {
      p = map K (a_1 in !h_3, b in !w_2) {
        d = dot(a_1, b)
        yield +d
      }
      r = map K (a_2 in !h_3, b_1 in !v_2) {
        d_1 = dot(a_2, b_1)
        d_2 = exp(d_1)
        yield +d_2
      }
      s = p * r
      yield s
    }
    yield z
  }
  return y
}
