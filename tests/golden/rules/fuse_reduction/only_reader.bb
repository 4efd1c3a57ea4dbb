# The list had no other reader: it is gone.
graph(X: K[M,K] = port) {
  p = map K (b in !X) {
    s = row_sum(b)
    yield s
  }
  r = reduce + K (!p)
  return r
}
# after
graph(X: K[M,K] = port) {
  r = map K (b in !X) {
    s = row_sum(b)
    yield +s
  }
  return r
}
