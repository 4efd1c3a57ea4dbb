# The sum counts the block of N that its map is at: outside of that map nobody knows its size.
graph(x: M,K[M,K], v: N[N]) {
  y = map M (x_1 in !x, v_1 = !v) {
    z = map N (x_2 = !x_1, v_2 in !v_1) {
      s = map K (a in !x_2) {
        t = row_sum(a)
        e = t over [M,N]
        f = row_sum(e)
        yield +f
      }
      u = s + v_2 over [M,N]
      yield u
    }
    yield z
  }
  return y
}
# because: s is computed from values spread over a block of N
