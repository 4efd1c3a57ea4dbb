# The sum of the rows that stand at the maximum, of what both maps compute from X.
graph(X: N[N] = port, V: N[D,N] = port) {
  m = map N (x in !X) {
    y = relu(x)
    m_1 = row_max(y)
    yield max m_1
  }
  v = map N (x_1 in !X, m_2 = m, w in !V) {
    h = where(relu(x_1) == m_2, w - m_2, 0) over [D,N]
    v_1 = row_sum(h)
    yield +v_1
  }
  return v
}
# after
graph(X: N[N] = port, V: N[D,N] = port) {
  m, v = map N (x in !X, w in !V) {
    y = relu(x)
    m_1 = row_max(y)
    h = where(relu(x) == m_1, w - m_1, 0) over [D,N]
    v_1 = row_sum(h)
    yield max t = m_1
    yield +v_1 by t: where(r == r2, x, 0)
  }
  return v
}
