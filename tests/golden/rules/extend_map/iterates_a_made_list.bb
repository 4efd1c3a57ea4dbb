# The map iterates a list made here: each iteration would need one element of it (no such operator).
graph(X: L,N[M,N] = port, Y: N[M,N] = port) {
  E = map N (x in !Y) {
    e = square(x)
    yield e
  }
  V = map L (x_1 in !X) {
    v = map N (b in !x_1) {
      c = b + 1
      yield c
    }
    yield v
  }
  O = map L (e_1 = !E, v_1 in !V) {
    z = map N (a in !e_1, b_1 in !v_1) {
      c_1 = mul(a, b_1)
      d = row_sum(c_1)
      yield +d
    }
    yield z
  }
  return O
}
# because: O is a result that the map does not make
# because: the map iterates V, which is made in the same graph
