"""The three programs of the paper as text: before the first rule, and after the last."""

ATTENTION_START = """
graph(Q: M,D[M,D], KT: N,D[N,D], VT: L,N[L,N]) {
  S = map M (q in !Q, kt = !KT) {
    s = map N (k in !kt, q2 = !q) {
      p = map D (a in !q2, b in !k) { d = dot(a, b)  yield d }
      s0 = reduce + D (!p)
      yield s0
    }
    yield s
  }
  A = map M (x in !S) { y = map N (b in !x) { c = b * |D| ** -0.5  yield c }  yield y }
  E = map M (x in !A) { y = map N (b in !x) { c = exp(b)  yield c }  yield y }
  T = map M (x in !E) {
    y = map N (b in !x) { c = row_sum(b)  yield c }
    z = reduce + N (!y)
    yield z
  }
  R = map M (x in !T) { y = reciprocal(x)  yield y }
  P = map M (x in !E, r in !R) {
    y = map N (b in !x, v = r) { c = row_scale(b, v)  yield c }
    yield y
  }
  O = map M (p in !P, vt = !VT) {
    o = map L (v in !vt, p2 = !p) {
      w = map N (a in !p2, b in !v) { d = dot(a, b)  yield d }
      z = reduce + N (!w)
      yield z
    }
    yield o
  }
  return O
}
"""

ATTENTION_FIRST = """
graph(Q: M,D[M,D], KT: N,D[N,D], VT: L,N[L,N]) {
  O = map M (q in !Q, kt = !KT, vt = !VT) {
    e, l = map N (k in !kt, q2 = !q) {
      s = map D (a in !q2, b in !k) { d = dot(a, b)  yield +d }
      c = exp(s * |D| ** -0.5)
      t = row_sum(c)
      yield c
      yield +t
    }
    r = reciprocal(l)
    o = map L (v in !vt, e2 = !e, r2 = r) {
      z = map N (a in !e2, b in !v) { d = dot(a, b)  yield +d }
      y = row_scale(z, r2)
      yield y
    }
    yield o
  }
  return O
}
"""

ATTENTION_FINAL = """
graph(Q: M,D[M,D], KT: N,D[N,D], VT: L,N[L,N]) {
  O = map M (q in !Q, kt = !KT, vt = !VT) {
    o = map L (v in !vt, q2 = !q, kt2 = !kt) {
      l, z = map N (k in !kt2, b in !v, q3 = !q2) {
        s = map D (a in !q3, c in !k) { d = dot(a, c)  yield +d }
        e = exp(s * |D| ** -0.5)
        t = row_sum(e)
        p = dot(e, b)
        yield +t
        yield +p
      }
      r = reciprocal(l)
      y = row_scale(z, r)
      yield y
    }
    yield o
  }
  return O
}
"""

LAYER_NORM_START = """
graph(X: M,K[M,K], YT: N,K[N,K]) {
  S = map M (x in !X) {
    s = map K (b in !x) { t = row_sum(b)  yield t }
    z = reduce + K (!s)
    yield z
  }
  C = map M (s in !S) { c = -(s * 1 / |K|)  yield c }
  H = map M (x in !X, c in !C) {
    h = map K (b in !x, v = c) { t = row_shift(b, v)  yield t }
    yield h
  }
  Q = map M (x in !X) { q = map K (b in !x) { t = b ** 2  yield t }  yield q }
  U = map M (q in !Q) {
    s = map K (b in !q) { t = row_sum(b)  yield t }
    z = reduce + K (!s)
    yield z
  }
  W = map M (u in !U, c in !C) { w = (u * 1 / |K| - c ** 2) ** -0.5  yield w }
  G = map M (h in !H, w in !W) {
    g = map K (b in !h, v = w) { t = row_scale(b, v)  yield t }
    yield g
  }
  O = map M (g in !G, yt = !YT) {
    o = map N (y in !yt, g2 = !g) {
      p = map K (a in !g2, b in !y) { d = dot(a, b)  yield d }
      z = reduce + K (!p)
      yield z
    }
    yield o
  }
  return O
}
"""

LAYER_NORM_FIRST = """
graph(X: M,K[M,K], YT: N,K[N,K]) {
  O = map M (x in !X, yt = !YT) {
    s, u = map K (a in !x) {
      s1 = row_sum(a)
      q = a ** 2
      u1 = row_sum(q)
      yield +s1
      yield +u1
    }
    m = -(s * 1 / |K|)
    w = (u * 1 / |K| - m ** 2) ** -0.5
    o = map N (y in !yt, x2 = !x, m2 = m, w2 = w) {
      c, p = map K (a in !x2, b in !y) {
        c1 = row_sum(b)
        p1 = dot(a, b)
        yield +c1
        yield +p1
      }
      f = outer(m2, c)
      g = add(f, p)
      z = row_scale(g, w2)
      yield z
    }
    yield o
  }
  return O
}
"""

LAYER_NORM_FINAL = """
graph(X: M,K[M,K], YT: N,K[N,K]) {
  O = map M (x in !X, yt = !YT) {
    o = map N (y in !yt, x2 = !x) {
      s, u, c, p = map K (a in !x2, b in !y) {
        s1 = row_sum(a)
        q = a ** 2
        u1 = row_sum(q)
        c1 = row_sum(b)
        p1 = dot(a, b)
        yield +s1
        yield +u1
        yield +c1
        yield +p1
      }
      m = -(s * 1 / |K|)
      f = outer(m, c)
      g = add(f, p)
      w = (u * 1 / |K| - m ** 2) ** -0.5
      z = row_scale(g, w)
      yield z
    }
    yield o
  }
  return O
}
"""

SWIGLU_START = """
graph(X: M,D[M,D], WT: K,D[K,D], VT: K,D[K,D], UT: N,K[N,K]) {
  Q = map M (x in !X) { q = map D (b in !x) { t = b ** 2  yield t }  yield q }
  S = map M (q in !Q) {
    s = map D (b in !q) { t = row_sum(b)  yield t }
    z = reduce + D (!s)
    yield z
  }
  R = map M (s in !S) { r = (s * 1 / |D|) ** -0.5  yield r }
  H = map M (x in !X, r in !R) {
    h = map D (b in !x, v = r) { t = row_scale(b, v)  yield t }
    yield h
  }
  A = map M (h in !H, wt = !WT) {
    a = map K (w in !wt, h2 = !h) {
      p = map D (x in !h2, y in !w) { d = dot(x, y)  yield d }
      z = reduce + D (!p)
      yield z
    }
    yield a
  }
  B = map M (a in !A) { b = map K (x in !a) { t = silu(x)  yield t }  yield b }
  C = map M (h in !H, vt = !VT) {
    c = map K (w in !vt, h2 = !h) {
      p = map D (x in !h2, y in !w) { d = dot(x, y)  yield d }
      z = reduce + D (!p)
      yield z
    }
    yield c
  }
  P = map M (b in !B, c in !C) {
    p = map K (x in !b, y in !c) { t = mul(x, y)  yield t }
    yield p
  }
  O = map M (p in !P, ut = !UT) {
    o = map N (u in !ut, p2 = !p) {
      w = map K (x in !p2, y in !u) { d = dot(x, y)  yield d }
      z = reduce + K (!w)
      yield z
    }
    yield o
  }
  return O
}
"""

SWIGLU_FIRST = """
graph(X: M,D[M,D], WT: K,D[K,D], VT: K,D[K,D], UT: N,K[N,K]) {
  O = map M (x in !X, wt = !WT, vt = !VT, ut = !UT) {
    s = map D (b in !x) { q = b ** 2  t = row_sum(q)  yield +t }
    r = (s * 1 / |D|) ** -0.5
    h = map K (w in !wt, v in !vt, x2 = !x, r2 = r) {
      a, b = map D (i in !x2, j in !w, k in !v) {
        a1 = dot(i, j)
        b1 = dot(i, k)
        yield +a1
        yield +b1
      }
      c = row_scale(a, r2)
      d = silu(c)
      e = row_scale(b, r2)
      f = mul(d, e)
      yield f
    }
    o = map N (u in !ut, h2 = !h) {
      z = map K (f in !h2, y in !u) { g = dot(f, y)  yield +g }
      yield z
    }
    yield o
  }
  return O
}
"""

SWIGLU_SECOND = """
graph(X: M,D[M,D], WT: K,D[K,D], VT: K,D[K,D], UT: N,K[N,K]) {
  O = map M (x in !X, wt = !WT, vt = !VT, ut = !UT) {
    o = map N (u in !ut, x2 = !x, wt2 = !wt, vt2 = !vt) {
      s = map D (b in !x2) { q = b ** 2  t = row_sum(q)  yield +t }
      r = (s * 1 / |D|) ** -0.5
      z = map K (w in !wt2, v in !vt2, y in !u, x3 = !x2, r2 = r) {
        a, b = map D (i in !x3, j in !w, k in !v) {
          a1 = dot(i, j)
          b1 = dot(i, k)
          yield +a1
          yield +b1
        }
        c = row_scale(a, r2)
        d = silu(c)
        e = row_scale(b, r2)
        f = mul(d, e)
        g = dot(f, y)
        yield +g
      }
      yield z
    }
    yield o
  }
  return O
}
"""

SWIGLU_FINAL = """
graph(X: M,D[M,D], WT: K,D[K,D], VT: K,D[K,D], UT: N,K[N,K]) {
  O = map M (x in !X, wt = !WT, vt = !VT, ut = !UT) {
    o = map N (u in !ut, x2 = !x, wt2 = !wt, vt2 = !vt) {
      z = map K (w in !wt2, v in !vt2, y in !u, x3 = !x2) {
        a, b, s = map D (i in !x3, j in !w, k in !v) {
          a1 = dot(i, j)
          b1 = dot(i, k)
          q = i ** 2
          s1 = row_sum(q)
          yield +a1
          yield +b1
          yield +s1
        }
        r = (s * 1 / |D|) ** -0.5
        c = row_scale(a, r)
        d = silu(c)
        e = row_scale(b, r)
        f = mul(d, e)
        g = dot(f, y)
        yield +g
      }
      yield z
    }
    yield o
  }
  return O
}
"""
