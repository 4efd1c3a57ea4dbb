"""For each rule, programs with a site of it, which ``planted.py`` puts into random programs.

Text forms, by the rule's name. No dim or value of a site has the name of another site's source, and
``N`` is a dim that may be renamed to ``M'``, so that the site reads one array twice.
"""

from __future__ import annotations

from collections.abc import Mapping

from blockbuster.testing.planted_extrema import EXTREMA, SCALED_EXTREMA

SCALED = "S = map K (x in !X, v = c) { s = row_scale(x, v) yield s }"
SHIFTED = "S = map K (x in !X, v = c) { s = row_shift(x, v) yield s }"
MEAN = """t, u = map K (x_0 in !X) {
            m = row_sum(x_0) q = square(x_0) r = row_sum(q) yield +m yield +r
          }
          c = -(t / |K|)"""
LISTED_SUM = "p = map K (a in !S2, b in !y) { d = dot(a, b) yield d } q = reduce + K (!p) yield q"
RUNNING_SUM = "p = map K (a in !S2, b in !y) { d = dot(a, b) yield +d } yield p"
MATMUL = f"map N (S2 = !S, y in !YT) {{ {LISTED_SUM} }}"
FOLDED_MATMUL = f"map N (S2 = !S, y in !YT) {{ {RUNNING_SUM} }}"
OTHER_MATMUL = f"map L (S2 = !S, y in !WT) {{ {RUNNING_SUM} }}"
ROWS = "X: K[M,K] = port, c: [M], YT: N,K[N,K]"
MORE_ROWS = f"{ROWS}, WT: L,K[L,K]"
BLOCKS = "X: K[M,K] = port, c: [M], Y: K[N,K] = port"
CENTERED = "X: K[M,K] = port, YT: N,K[N,K]"
CENTERED_BLOCKS = "X: K[M,K] = port, Y: K[N,K] = port"

SCORES = """S = map M (x in !X, w = !W) {
            s = map N (x_1 = !x, w_1 in !w) {
              p = map K (a in !x_1, b in !w_1) { d = dot(a, b) yield +d } yield p
            }
            yield s
          }"""
TOTALS = """map M (s_1 in !S) {
            t = map N (s_2 in !s_1) { r = row_sum(s_2) yield +r } yield t
          }"""
LARGEST = """map M (s_3 in !S) {
            u = map N (s_4 in !s_3) { e = abs(s_4) v = row_max(e) yield max v } yield u
          }"""
PRODUCTS = "X: M,K[M,K], W: N,K[N,K]"

SITES: Mapping[str, tuple[str, ...]] = {
    "copy-producer": (
        f"graph({PRODUCTS}) {{ {SCORES} l = {TOTALS} m = {LARGEST} return l, m }}",
        f"""graph({PRODUCTS}) {{
          {SCORES}
          E = map M (s_5 in !S) {{
            f = map N (s_6 in !s_5) {{ g = exp(s_6) yield g }} yield f
          }}
          G = map M (s_7 in !S, f_1 in !E) {{
            h = map N (s_8 in !s_7, f_2 in !f_1) {{ i = mul(s_8, f_2) yield i }} yield h
          }}
          l = {TOTALS.replace("!S", "!G")}
          m = {LARGEST}
          return l, m
        }}""",
    ),
    "transpose-producer": (
        f"graph({PRODUCTS}) {{ {SCORES} T = transpose N,M[N,M] (!S) return T }}",
        """graph(X: M,N[M,N], c: M[M], b: N[N]) {
          S = map M (x in !X, v in !c, w = !b) {
            s = map N (x_1 in !x, v_1 = v, w_1 in !w) {
              y = row_shift(x_1, v_1)
              z = col_scale(y, w_1)
              a = tanh(z)
              e = a + v_1 over [M,N]
              f = mul(e, x_1)
              yield f
            }
            yield s
          }
          T = transpose N,M[N,M] (!S)
          return T
        }""",
        """graph(X: M[M,K], Y: N[N,K], c: M[M], b: N[N]) {
          S = map M (x in !X, v in !c, y = !Y, w = !b) {
            s = map N (x_1 = x, v_1 = v, y_1 in !y, w_1 in !w) {
              d = dot(x_1, y_1)
              o = outer(v_1, w_1)
              f = sub(d, o)
              yield f
            }
            yield s
          }
          T = transpose N,M[N,M] (!S)
          return T
        }""",
    ),
    "extend-map-over-copies": (
        """graph(X: N[M,N] = port, VT: L,N[L,N]) {
          E, F = map N (x in !X) { e = abs(x) f = e + 1 yield e yield f }
          O = map L (e_1 = !E, v in !VT) {
            o = map N (a in !e_1, b in !v) { d = dot(a, b) yield +d } yield o
          }
          s = map N (f_1 in !F) { t = row_sum(f_1) yield +t }
          return O, s
        }""",
        """graph(X: N[M,N] = port, VT: L,N[L,N], UT: K,N[K,N]) {
          E = map N (x in !X) { e = abs(x) yield e }
          F = map N (e_1 in !E) { f = e_1 * 2 yield f }
          O = map L (f_1 = !F, v in !VT) {
            o = map N (a in !f_1, b in !v) { d = dot(a, b) yield +d } yield o
          }
          P = map K (e_2 = !E, u in !UT) {
            p = map N (g in !e_2, h in !u) { i = dot(g, h) yield +i } yield p
          }
          return O, P
        }""",
    ),
    "fuse-maps": (
        """graph(X: M,K[M,K]) {
          T = map M (x in !X) { t = map K (b in !x) { e = exp(b) yield e } yield t }
          Y = map M (t_1 in !T) { y = map K (b_1 in !t_1) { f = b_1 + 1 yield f } yield y }
          return Y
        }""",
        """graph(X: K[M,K] = port, Z: K[M,K] = port) {
          s, T = map K (x in !X) { t = tanh(x) r = row_sum(t) yield +r yield t }
          Y = map K (t_1 in !T, z in !Z) { y = mul(t_1, z) yield y }
          return Y, s
        }""",
    ),
    "fuse-siblings": (
        """graph(X: M,K[M,K]) {
          A = map M (x in !X) { a = map K (b in !x) { e = exp(b) yield e } yield a }
          B = map M (x_1 in !X) { s = map K (b_1 in !x_1) { t = row_sum(b_1) yield +t } yield s }
          return A, B
        }""",
        """graph(X: K[M,K] = port, Z: K[M,K] = port, c: [M]) {
          A = map K (x in !X, v = c) { a = row_scale(x, v) yield a }
          B = map K (z in !Z, v_1 = c) { b = row_shift(z, v_1) r = row_sum(b) yield +r }
          return A, B
        }""",
    ),
    "fuse-reduction": (
        """graph(X: K[M,K] = port) {
          P = map K (x in !X) { p = row_sum(x) yield p }
          r = reduce + K (!P)
          return r
        }""",
        """graph(X: K[M,K] = port) {
          E = map K (x in !X) { e = abs(x) p = row_max(e) yield p }
          m = reduce max K (!E)
          Y = map K (p_1 in !E, v = m) { y = mul(p_1, v) yield +y }
          return Y
        }""",
        """graph(X: K[M,K] = port) {
          P, Q = map K (x in !X) { p = row_sum(x) q = row_max(x) yield p yield q }
          s = reduce max K (!P)
          r = reduce + K (!Q)
          return s, r
        }""",
    ),
    "swap-scale-dot": (
        f"graph({ROWS}) {{ {SCALED} O = {MATMUL} return O }}",
        f"graph({ROWS}) {{ {SCALED} O = {FOLDED_MATMUL} return O }}",
    ),
    "swap-shift-dot": (
        f"graph({ROWS}) {{ {SHIFTED} O = {MATMUL} return O }}",
        f"graph({ROWS}) {{ {SHIFTED} O = {FOLDED_MATMUL} return O }}",
    ),
    "swap-mean-dot": (
        f"graph({CENTERED}) {{ {MEAN} {SHIFTED} O = {MATMUL} return O, u }}",
        f"graph({CENTERED}) {{ {MEAN} {SHIFTED} O = {FOLDED_MATMUL} return O, u }}",
    ),
    "extend-map": (
        """graph(X: N[M,N] = port, VT: L,N[L,N]) {
          E, l = map N (x in !X) { e = exp(x) t = row_sum(e) yield e yield +t }
          O = map L (e_1 = !E, v in !VT, l_1 = l) {
            z = map N (a in !e_1, b in !v) { d = dot(a, b) yield +d }
            y = row_scale(z, l_1)
            yield y
          }
          return O
        }""",
        """graph(X: K[M,K] = port, YT: N,K[N,K]) {
          s = map K (x in !X) { t = row_sum(x) yield +t }
          O = map N (x_1 = !X, y in !YT, s_1 = s) {
            p = map K (a in !x_1, b in !y) { d = dot(a, b) yield +d }
            z = row_scale(p, s_1)
            yield z
          }
          return O
        }""",
        """graph(X: N[M,N] = port, VT: L,N[L,N]) {
          P, r = map N (x in !X) { e = square(x) t = row_sum(e) yield e yield +t }
          u = map N (p in !P, r_1 = r) { q = row_scale(p, r_1) t_1 = row_max(q) yield max t_1 }
          O = map L (p_1 = !P, r_2 = r, v in !VT, u_1 = u) {
            z = map N (a in !p_1, r_3 = r_2, b in !v) {
              g = row_scale(a, r_3) d = dot(g, b) yield +d
            }
            y = row_scale(z, u_1)
            yield y
          }
          return O
        }""",
    ),
    "duplicate-scale": (
        f"graph({MORE_ROWS}) {{ {SCALED} A = {MATMUL} B = {OTHER_MATMUL} return A, B }}",
    ),
    "fuse-elementwise": (
        "graph(X: M[M]) { Y = map M (x in !X) { t = x * 2 y = exp(t) yield y } return Y }",
        "graph(c: [M], d: [M]) { t = c * 2 y = where(t > 0, d, t) return y }",
    ),
    "extend-map-over-ancestors": (
        """graph(X: N[M,N] = port, VT: L,N[L,N], Z: N[M,N] = port) {
          s = map N (x in !X) { q = square(x) t = row_sum(q) yield +t }
          O = map L (e = !X, v in !VT, s_1 = s) {
            o = map N (a in !e, b in !v) { d = dot(a, b) yield +d }
            y = row_scale(o, s_1)
            yield y
          }
          U = map N (z in !Z) { u = exp(z) yield u }
          return O, U
        }""",
    ),
    "local-linearity": (
        f"""graph({BLOCKS}) {{
          p = map K (x in !X, v = c, y in !Y) {{ s = row_scale(x, v) d = dot(s, y) yield +d }}
          return p
        }}""",
        f"""graph({CENTERED_BLOCKS}) {{
          {MEAN}
          p, l = map K (x in !X, v = c, y in !Y) {{
            s = row_shift(x, v) d = dot(s, y) h = row_max(x) yield +d yield max h
          }}
          return p, l, u
        }}""",
    ),
    **EXTREMA,
    "factor-out": (
        *SCALED_EXTREMA,
        """graph(X: K[M,K] = port, G: K[M,K] = port, Y: K[N,K] = port) {
          s = map K (x in !X) { t = row_sum(x) yield +t }
          p, q = map K (x_1 in !X, v = s, g in !G, y in !Y) {
            r = row_scale(x_1, v) u = mul(r, g) w = where(g > 0, -u, u / 2) d = dot(w, y)
            a = row_sum(u) yield +d yield +a
          }
          return p, q
        }""",
        """graph(X: K[M,K] = port, G: K[M,K] = port) {
          s = map K (x in !X) { t = row_max(x) yield max t }
          p, q = map K (x_1 in !X, v = s, g in !G) {
            r = row_scale(x_1, v) u = where(g > 0, -r, r / 4) a = row_sum(u) b = row_sum(r)
            yield +a yield +b
          }
          return p, q
        }""",
    ),
    "factor-out-exp": (
        """graph(X: K[M,K] = port, Y: K[N,K] = port) {
          s = map K (x in !X) { t = row_max(x) yield max t }
          v = -s
          p, l = map K (x_1 in !X, v_1 = v, y in !Y) {
            r = row_shift(x_1, v_1) e = exp(r) d = dot(e, y) a = row_sum(e) yield +d yield +a
          }
          return p, l
        }""",
        """graph(X: K[M,K] = port, G: K[M,K] = port) {
          s = map K (x in !X) { t = row_sum(x) yield +t }
          l = map K (x_1 in !X, v = s, g in !G) {
            e = exp(x_1 * 0.5 - 2 * v) over [M,K] u = where(g > 0, e, 0) a = row_sum(u) yield +a
          }
          return l
        }""",
    ),
    "fold-columns": (
        f"""graph({BLOCKS}, G: K[K] = port) {{
          p = map K (x in !X, v = c, g in !G, y in !Y) {{
            s = row_scale(x, v) t = col_scale(s, g) d = dot(t, y) yield +d
          }}
          return p
        }}""",
        f"""graph({CENTERED_BLOCKS}, G: K[K] = port) {{
          {MEAN}
          p = map K (x in !X, v = c, g in !G, y in !Y) {{
            s = row_shift(x, v) h = col_shift(s, g) d = dot(h, y) yield +d
          }}
          return p, u
        }}""",
    ),
    "remake": (
        """graph(X: H,L,N[L,N] = port, a: L[L], b: N[N]) {
          C = map L (x in !a, y = !b) {
            c = map N (z = x, u in !y) { d = z > u over [L,N] yield d }
            yield c
          }
          Y = map H (s in !X, C_1 = !C) {
            y = map L (t in !s, c_1 in !C_1) {
              z = map N (v in !t, d_1 in !c_1) { w = where(d_1, v, 1) yield w }
              yield z
            }
            yield y
          }
          return Y
        }""",
        """graph(X: K[M,K] = port, G: K[K] = port) {
          S, q, r = map K (x in !X, g in !G) {
            s = col_scale(x, g) t = row_sum(s) u = g + 1 yield s yield +t yield u
          }
          Y, Z = map K (s_1 in !S, q_1 = q, r_1 in !r) {
            y = row_scale(s_1, q_1) z = col_scale(s_1, r_1) yield y yield z
          }
          return Y, Z
        }""",
        """graph(X: L,N[L,N], a: N[N], b: N[N], Z: N[K,N] = port) {
          C, q = map N (x in !a, y in !b, z in !Z) { d = x * y e = row_sum(z) yield d yield +e }
          Y = map L (s in !X, C_1 = !C, x_1 = !a) {
            w = map N (t in !s, c in !C_1, x_2 in !x_1) {
              u = t * c + x_2 over [L,N] v = row_sum(u) yield +v
            }
            yield w
          }
          return Y, q
        }""",
    ),
    "materialize": (
        """graph(X: M,K[M,K], W: N,K[N,K]) {
          Y = map M (x in !X, w = !W) {
            z = map N (x_1 = !x, w_1 in !w) {
              p, s = map K (a in !x_1, b in !w_1) {
                d = dot(a, b) q = square(a) t = row_sum(q) yield +d yield +t
              }
              r = s + 1
              u = row_scale(p, r)
              yield u
            }
            yield z
          }
          return Y
        }""",
        """graph(X: M,K[M,K], W: N,K[N,K], c: M[M]) {
          Y = map M (x in !X, w = !W, c_1 in !c) {
            z = map N (x_1 = !x, w_1 in !w, c_2 = c_1) {
              p, t, s = map K (a in !x_1, b in !w_1) {
                d = dot(a, b) v = row_sum(b) e = row_max(a) yield +d yield +v yield max e
              }
              f = c_2 - s
              o = outer(f, t)
              u = add(o, p)
              yield u
            }
            yield z
          }
          return Y
        }""",
        """graph(X: M,K[M,K], W: N,K[N,K], c: M[M]) {
          Y = map M (x in !X, w = !W, c_1 in !c) {
            z = map N (x_1 = !x, w_1 in !w, c_2 = c_1) {
              p = map K (a in !x_1, b in !w_1, c_3 = c_2) {
                s = row_shift(a, c_3) q = square(s) d = dot(q, b) yield +d
              }
              yield p
            }
            yield z
          }
          return Y
        }""",
        """graph(X: M,K[M,K], G: K[K]) {
          Y = map M (x in !X, g = !G) {
            s = map K (g_1 in !g) { t = row_sum(g_1) yield +t }
            z = map K (a in !x, s_1 = s) { u = a * s_1 over [M,K] yield u }
            yield z
          }
          return Y
        }""",
    ),
    "peel-first-iteration": (
        """graph(X: N[M,N] = port, VT: L,N[L,N]) {
          E = map N (x in !X) { e = exp(x) yield e }
          O = map L (e_1 = !E, v in !VT) {
            o = map N (a in !e_1, b in !v) { d = dot(a, b) yield +d }
            yield o
          }
          return O
        }""",
    ),
}  # fmt: skip
