# (c) Both maps need the list P and its sum r, so neither can join the map that makes P.
graph(X: N[M,N] = port, VT: L,N[L,N]) {
  P, r = map N (x in !X) {
    e = square(x)
    t = row_sum(e)
    yield e
    yield +t
  }
  u = map N (p in !P, r2 = r) {
    q = row_scale(p, r2)
    t_1 = row_max(q)
    yield max t_1
  }
  O = map L (p2 = !P, r2_1 = r, v in !VT, u2 = u) {
    z = map N (a in !p2, r3 = r2_1, b in !v) {
      q_1 = row_scale(a, r3)
      d = dot(q_1, b)
      yield +d
    }
    y = row_scale(z, u2)
    yield y
  }
  return O
}
# after
graph(X: N[M,N] = port, VT: L,N[L,N]) {
  P, r = map N (x in !X) {
    e = square(x)
    t = row_sum(e)
    yield e
    yield +t
  }
  u = map N (p in !P, r2 = r) {
    q = row_scale(p, r2)
    t_1 = row_max(q)
    yield max t_1
  }
  v = head L (!VT)
  z = map N (a in !P, r3 = r, b in !v) {
    q_1 = row_scale(a, r3)
    d = dot(q_1, b)
    yield +d
  }
  y = row_scale(z, u)
  O = map L from 1 (p2 = !P, r2_1 = r, v_1 in !VT, u2 = u; y) {
    z_1 = map N (a_1 in !p2, r3_1 = r2_1, b_1 in !v_1) {
      q_2 = row_scale(a_1, r3_1)
      d_1 = dot(q_2, b_1)
      yield +d_1
    }
    y_1 = row_scale(z_1, u2)
    yield y_1
  }
  return O
}
