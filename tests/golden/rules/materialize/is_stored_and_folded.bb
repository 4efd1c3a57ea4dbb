# The sum is folded once more: so far it is stored nowhere.
graph(x: M,K[M,K]) {
  y = map M (x_1 in !x) {
    s = map K (a in !x_1) {
      t = row_sum(a)
      yield +t
    }
    c = row_sum(s)
    yield +c
  }
  return y
}
# after
graph(x: M,K[M,K]) {
  c = map M (x_1 in !x) {
    s = map K (a in !x_1) {
      t = row_sum(a)
      yield +t
    }
    c_1 = row_sum(s)
    yield c_1
  }
  y = map M (c_2 in !c) {
    yield +c_2
  }
  return y
}
