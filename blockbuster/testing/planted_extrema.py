"""Programs with sites of the rules on maxima and minima, for planted_sites.py."""

from __future__ import annotations

from collections.abc import Mapping

EXTREMA: Mapping[str, tuple[str, ...]] = {
    "repair-by-law": (
        """graph(X: K[M,K] = port, I: K[K] = port) {
          m = map K (x in !X) { r = row_max(x) yield max r }
          p = map K (x_1 in !X, m_1 = m, i in !I) {
            c = x_1 == m_1 over [M,K] h = where(c, i, inf) over [M,K] a = row_min(h) yield min a }
          return p, m }""",
        """graph(X: K[M,K] = port, V: K[M,K] = port) {
          s, m = map K (x in !X) { y = abs(x) r = row_min(y) yield y yield min r }
          p, q = map K (s_1 in !s, m_1 = m, v in !V) {
            h = where(m_1 == s_1 or s_1 != s_1, v - m_1, 0) over [M,K] a = row_sum(h)
            u = s_1 - m_1 over [M,K] b = row_max(u) yield +a yield max b }
          return p, q }""",
        """graph(X: K[M,K] = port) {
          m = map K (x in !X) { y = abs(x) r = row_max(y) yield max r }
          c = 1 / maximum(m, 2)
          p = map K (x_1 in !X, v = c) {
            u = row_scale(x_1, v) h = square(u) a = row_sum(h) yield +a }
          return p }""",
        """graph(X: K[M,K] = port, B: [M], W: K[K] = port) {
          s, m = map K (x in !X) { y = x - 3 z = abs(y) r = row_max(z) yield y yield max r }
          c = B * m over [M]
          p, q = map K (s_1 in !s, v = c, w in !W) {
            h = w * s_1 / v * square(s_1 / v) over [M,K] a = row_sum(h)
            b = row_max(s_1) yield +a yield max b }
          return p, q }""",
    ),
    "rolling-update": (
        """graph(X: K[M,K] = port) {
          m = map K (x in !X) { y = square(x) r = row_sum(y) yield +r }
          c = 1 / (m + 2)
          p = map K (x_1 in !X, v = c) {
            u = row_scale(x_1, v) h = square(u) a = row_sum(h) yield +a }
          return p }""",
        """graph(X: K[M,K] = port, B: [M]) {
          s, n = map K (x in !X) { y = x - 3 z = square(y) q = row_sum(z) yield y yield +q }
          p, t = map K (s_1 in !s, b = B, w = n) {
            h = b * s_1 + b * s_1 * w over [M,K] a = row_sum(h) c = row_max(s_1)
            yield +a yield max c }
          return p, t }""",
    ),
    "monotone-out-of-extremum": (
        """graph(X: K[M,K] = port) {
          m = map K (x in !X) { r = row_max(x) yield max r }
          p = map K (x_1 in !X, v = m) { u = v - x_1 over [M,K] a = row_max(u) yield max a }
          return p }""",
        """graph(X: K[M,K] = port, Y: K[M,K] = port) {
          m = map K (x in !X) { t = row_sum(x) yield +t }
          p = map K (x_1 in !X, y in !Y, v = m) {
            w = add(x_1, y) u = maximum(w - v, 1) over [M,K] a = row_max(u) yield max a }
          return p }""",
        """graph(X: K[M,K] = port, Y: K[M,K] = port) {
          s, m = map K (x in !X) { r = row_max(x) t = row_sum(x) yield max r yield +t }
          c = m + s over [M]
          p, q = map K (x_1 in !X, y in !Y, v = c) {
            w = mul(y, x_1) u = minimum(w + v, 2) over [M,K] a = row_min(u) b = row_sum(w)
            yield min a yield +b }
          return p, q, s }""",
    ),
}

SCALED_EXTREMA: tuple[str, ...] = (
    """graph(X: K[M,K] = port) {
      e, s = map K (x in !X) { y = exp(x) t = row_sum(y) yield y yield +t }
      c = recip0(s)
      p = map K (e_1 in !e, v = c) { u = row_scale(e_1, v) a = row_max(u) yield max a }
      return p }""",
    """graph(X: K[M,K] = port, Y: K[M,K] = port) {
      s = map K (x in !X) { q = exp(x) t = row_sum(q) yield +t }
      c = exp(-s)
      p = map K (x_1 in !X, y in !Y, v = c) {
        w = sub(y, x_1) u = w * v over [M,K] a = row_min(u) yield min a }
      return p, s }""",
    """graph(X: K[M,K] = port, W: K[K] = port) {
      s = map K (x in !X) { y = square(x) t = row_sum(y) yield +t }
      c = rsqrt(s)
      p = map K (x_1 in !X, v = c, w in !W) {
        u = row_scale(x_1, v) b = col_scale(u, w) e = abs(b) a = row_max(e) yield max a }
      return p }""",
    """graph(X: K[M,K] = port, Y: K[M,K] = port) {
      s, m = map K (x in !X) {
        q = square(x) t = row_sum(q) r = row_max(x) yield +t yield max r }
      c = reciprocal(sqrt(1 + s))
      p = map K (x_1 in !X, y in !Y, v = c) {
        e = abs((y - x_1) * v / 2) over [M,K] a = row_max(e) yield max a }
      return p, m }""",
)
"""Maxima, minima and magnitudes of what all iterations scale alike."""
