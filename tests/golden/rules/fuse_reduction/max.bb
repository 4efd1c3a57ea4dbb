# Any monoid can be folded on the fly.
graph(X: K[M,K] = port) {
  p = map K (b in !X) {
    s = row_max(b)
    yield s
  }
  r = reduce max K (!p)
  return r
}
# after
graph(X: K[M,K] = port) {
  r = map K (b in !X) {
    s = row_max(b)
    yield max s
  }
  return r
}
