# The rows may be computed, in one loop or in two: their values count.
graph(X: K[M,K] = port, YT: N,K[N,K]) {
  u, E = map K (x in !X) {
    e = tanh(x)
    q = square(e)
    b = row_sum(q)
    yield +b
    yield e
  }
  t = map K (x_1 in !X) {
    h = tanh(x_1)
    a = row_sum(h)
    yield +a
  }
  c = -(t / |K|)
  S = map K (x_2 in !E, v = c) {
    s = row_shift(x_2, v)
    yield s
  }
  O = map N (S2 = !S, y in !YT) {
    p = map K (a_1 in !S2, b_1 in !y) {
      d = dot(a_1, b_1)
      yield +d
    }
    yield p
  }
  return O, u
}
# after
graph(X: K[M,K] = port, YT: N,K[N,K]) {
  t = map K (x in !X) {
    h = tanh(x)
    a = row_sum(h)
    yield +a
  }
  c = -(t / |K|)
  t1 = map N (yt in !YT) {
    t2 = map K (yt_1 in !yt) {
      t3 = row_sum(yt_1)
      yield t3
    }
    t4 = reduce + K (!t2)
    yield t4
  }
  t5 = map N (c_1 = c, t1_1 in !t1) {
    t6 = outer(c_1, t1_1)
    yield t6
  }
  u, E = map K (x_1 in !X) {
    e = tanh(x_1)
    q = square(e)
    b = row_sum(q)
    yield +b
    yield e
  }
  t7 = map N (S2 = !E, y in !YT) {
    p = map K (a_1 in !S2, b_1 in !y) {
      d = dot(a_1, b_1)
      yield +d
    }
    yield p
  }
  O = map N (t5_1 in !t5, t7_1 in !t7) {
    t8 = add(t5_1, t7_1)
    yield t8
  }
  return O, u
}
