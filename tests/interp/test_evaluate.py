"""Every operator against plain NumPy, under several blockings; empty dims; what inputs may be."""

import math

import numpy as np
import pytest

from blockbuster.interp.evaluate import evaluate
from blockbuster.ir.parse import parse

RANDOM = np.random.default_rng(0)
X, Y = RANDOM.uniform(0.5, 2, (2, 5, 7))
V, W = RANDOM.uniform(0.5, 2, 5), RANDOM.uniform(0.5, 2, 7)
BLOCKINGS = [{}, {"M": 2, "K": 4}, {"M": 5, "K": 7}]

ON_BLOCKS = """graph(X: M,K[M,K], Y: M,K[M,K], V: M[M], W: K[K]) {
  Z = map M (x in !X, y in !Y, v in !V, w = !W) {
    z = map K (a in !x, b in !y, d in !w, c = v) { e = %s  yield e }
    yield z
  }
  return Z
}"""


@pytest.mark.parametrize("blocks", BLOCKINGS)
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("add(a, b)", X + Y),
        ("sub(a, b)", X - Y),
        ("mul(a, b)", X * Y),
        ("div(a, b)", X / Y),
        ("row_shift(a, c)", X + V[:, None]),
        ("row_scale(a, c)", X * V[:, None]),
        ("col_shift(a, d)", X + W),
        ("col_scale(a, d)", X * W),
        ("outer(c, d)", np.outer(V, W)),
        ("a * b + |K|", X * Y + 7),
        ("a * c + d over [M,K]", X * V[:, None] + W),
        ("cast float16 (a)", X.astype(np.float16)),
        ("cast bfloat16 (a)", X),
        ("exp(a) / log(b + 1)", np.exp(X) / np.log(Y + 1)),
        ("where(a < b, a, -b)", np.where(X < Y, X, -Y)),
        ("maximum(a, b) - minimum(a, b)", np.abs(X - Y)),
        ("gelu(a)", X * (1 + np.vectorize(math.erf)(X / math.sqrt(2))) / 2),
        ("silu(a)", X / (1 + np.exp(-X))),
        ("sub0(a, b) * recip0(b)", (X - Y) / Y),
    ],
)
def test_operators_on_blocks(text, expected, blocks):
    arrays = {"X": X, "Y": Y, "V": V, "W": W}
    graph = parse(ON_BLOCKS % text)
    used = {i.view.source for i in graph.inputs}

    out = evaluate(graph, {n: arrays[n] for n in used}, blocks)["out"]

    np.testing.assert_allclose(out, expected, rtol=4e-3 if "bfloat" in text else 1e-14)


@pytest.mark.parametrize("blocks", BLOCKINGS)
@pytest.mark.parametrize(
    ("row", "monoid", "expected"),
    [("row_sum", "+", X.sum(1)), ("row_max", "max", X.max(1)), ("row_min", "min", X.min(1))],
)
def test_folds(row, monoid, expected, blocks):
    text = f"""graph(X: M,K[M,K]) {{
      S = map M (x in !X) {{
        s = map K (b in !x) {{ t = {row}(b)  yield t }}
        u = reduce {monoid} K (!s)
        yield u
      }}
      T = map M (x in !X) {{
        s = map K (b in !x) {{ t = {row}(b)  yield {monoid} t }}
        yield s
      }}
      return S, T
    }}"""
    out = evaluate(parse(text), {"X": X}, blocks)

    np.testing.assert_allclose(out["out0"], expected, rtol=1e-14)
    np.testing.assert_array_equal(out["out1"], out["out0"])


MATMUL = """graph(A: M,K[M,K], B: N,K[N,K] = B(K,N)) {
  C = map M (a in !A, b = !B) {
    c = map N (y in !b, x = !a) { p = map K (i in !x, j in !y) { d = dot(i, j) yield +d } yield p }
    yield c
  }
  T = transpose N,M[N,M] (!C)
  return product = C, turned = T, unit = C(N,1,M)
}"""


@pytest.mark.parametrize("blocks", [{}, {"M": 2, "N": 3, "K": 4}])
def test_dot_transpose_and_views(blocks):
    b = RANDOM.normal(size=(7, 3))

    out = evaluate(parse(MATMUL), {"A": X, "B": b}, blocks)

    np.testing.assert_allclose(out["product"], X @ b, rtol=1e-14)
    np.testing.assert_array_equal(out["turned"], out["product"].T)
    np.testing.assert_array_equal(out["unit"], out["product"].T[:, None])


def test_relabel_and_index():
    text = """graph(V: M[M], i: M[M] = index(M)) {
      U = relabel M -> M' (!V)
      j = relabel M -> M' (!i)
      Z = map M (v in !V, a in !i, u = !U, b = !j) {
        z = map M' (w in !u, c in !b, x = v, d = a) {
          e = where(d >= c, x * w, -inf) over [M,M']
          yield e
        }
        yield z
      }
      return Z
    }"""
    expected = np.where(np.tri(5, dtype=bool), np.outer(V, V), -np.inf)

    for blocks in ({}, {"M": 3}):
        np.testing.assert_array_equal(evaluate(parse(text), {"V": V}, blocks)["out"], expected)
    with pytest.raises(ValueError, match=r"M' is M relabeled .* same blocks"):
        evaluate(parse(text), {"V": V}, {"M": 3, "M'": 1})


def test_list_only_dims_hold_one_element_per_block():
    text = """graph(X: B,M,D[M,D], W: B,D[B,D]) {
      Z = map B (x in !X, w in !W) {
        y = map M (r in !x, u = !w) {
          z = map D (b in !r, v in !u) { t = b * v over [M,D]  yield t }
          yield z
        }
        yield y
      }
      return Z
    }"""
    x, w = RANDOM.normal(size=(3, 5, 4)), RANDOM.normal(size=(3, 4))

    out = evaluate(parse(text), {"X": x, "W": w}, {"M": 2, "D": 2})["out"]

    np.testing.assert_array_equal(out, x * w[:, None])
    with pytest.raises(ValueError, match="dim B is list-only"):
        evaluate(parse(text), {"X": x, "W": w}, {"B": 1})


def test_groups_are_rescaled():
    text = """graph(S: M,N[M,N]) {
      L, T = map M (s in !S) {
        l, t = map N (b in !s) {
          r = row_max(b)
          e = exp(sub0(b, r)) over [M,N]
          p = row_sum(e)
          yield max z = r
          yield +p by z: x * exp(sub0(r, r2))
        }
        yield l
        yield t
      }
      return L, T
    }"""
    scores = RANDOM.normal(size=(4, 9)) * 1000
    scores[:, 3:5] = -np.inf
    peak = scores.max(1)
    expected = np.exp(scores - peak[:, None]).sum(1)

    for blocks in ({}, {"M": 2, "N": 3}, {"N": 9}):
        out = evaluate(parse(text), {"S": scores}, blocks)
        np.testing.assert_array_equal(out["out0"], peak)
        np.testing.assert_allclose(out["out1"], expected, rtol=1e-12)


def test_misc_takes_and_gives_whole_arrays():
    text = """graph(X: M,K[M,K]) {
      S, T = misc "sorted and total" : M,K[M,K] M[M] (!X)
      U = map M (t in !T) { u = t * 2  yield u }
      return S, U
    }"""
    graph = parse(text, {"sorted and total": lambda x: (np.sort(x, axis=1), x.sum(1))})

    out = evaluate(graph, {"X": X}, {"M": 2, "K": 4})

    np.testing.assert_array_equal(out["out0"], np.sort(X, axis=1))
    np.testing.assert_array_equal(out["out1"], 2 * X.sum(1))


@pytest.mark.parametrize(("monoid", "value"), [("+", 0.0), ("max", -math.inf), ("min", math.inf)])
def test_folds_over_nothing_give_the_identity(monoid, value):
    text = f"""graph(X: M,K[M,K]) {{
      S = map M (x in !X) {{ s = map K (b in !x) {{ t = row_sum(b) yield {monoid} t }} yield s }}
      return S
    }}"""

    out = evaluate(parse(text), {"X": np.ones((5, 0))}, {"M": 2})["out"]

    np.testing.assert_array_equal(out, np.full(5, value))
    assert evaluate(parse(text), {"X": np.ones((0, 5))})["out"].shape == (0,)


def test_nan_propagates_through_max():
    text = "graph(X: M[M]) { s = map M (x in !X) { t = row_max(x) yield max t } return s }"

    assert np.isnan(evaluate(parse(text), {"X": np.array([1, np.nan, 2])}, {"M": 3})["out"])


def test_bodies_take_whole_items_by_name():
    graph = parse("graph(a: [M,K], v: [M]) { b = row_scale(a, v) return b }")

    np.testing.assert_array_equal(evaluate(graph, {"a": X, "v": V})["out"], X * V[:, None])
