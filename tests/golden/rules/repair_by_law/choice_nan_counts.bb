# NaN is the minimum where it is; what is searched was computed, and the map that waits has more results.
graph(X: N[M,N] = port, K: N[N] = port) {
  m, S = map N (x in !X) {
    s = tanh(x)
    m_1 = row_min(s)
    yield min m_1
    yield s
  }
  i, t = map N (m_2 = m, s_1 in !S, k in !K) {
    c = m_2 == s_1 over [M,N]
    d = c or s_1 != s_1
    h = where(d, k, inf) over [M,N]
    i_1 = row_min(h)
    t_1 = s_1 - m_2 over [M,N]
    u = row_sum(t_1)
    yield min i_1
    yield +u
  }
  return i, t
}
# after
graph(X: N[M,N] = port, K: N[N] = port) {
  m, i, S = map N (x in !X, k in !K) {
    s = tanh(x)
    m_1 = row_min(s)
    c = m_1 == s over [M,N]
    d = c or s != s
    h = where(d, k, inf) over [M,N]
    i_1 = row_min(h)
    yield min t = m_1
    yield min i_1 by t: where(r == r2 or r != r, x, inf)
    yield s
  }
  t_1 = map N (s_1 in !S, m_2 = m) {
    t_2 = s_1 - m_2 over [M,N]
    u = row_sum(t_2)
    yield +u
  }
  return i, t_1
}
