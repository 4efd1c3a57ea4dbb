"""Labels: scalar expressions and operators as mathematicians write them."""

import pytest

from blockbuster.ir.expr import Arg, Expr, Size, call
from blockbuster.ir.parse import parse
from blockbuster.view.notation import formula, is_ordered, label, operations, summary

X, Y = Arg(0), Arg(1)


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (call("mul", X, call("pow", Size("D"), -0.5)), "x / √|D|"),
        (call("mul", X, call("div", 1, Size("D"))), "x / |D|"),
        (call("mul", call("div", 1, X), call("div", 1, Y)), "1/x / y"),
        (call("div", X, call("mul", X, Y)), "x / (x × y)"),
        (call("mul", call("add", X, Y), 2), "(x + y) × 2"),
        (call("sub", X, call("sub", X, Y)), "x − (x − y)"),
        (call("sub", call("sub", X, Y), X), "x − y − x"),
        (call("sub0", X, Y), "x − y"),
        (call("square", call("sub", X, Y)), "(x − y)²"),
        (call("pow", call("neg", X), 2), "(−x)²"),
        (call("neg", call("square", X)), "−x²"),
        (call("square", call("square", X)), "(x²)²"),
        (call("pow", call("square", X), Y), "(x²)^y"),
        (call("rsqrt", call("add", X, 1e-6)), "1/√(x + 1e−06)"),
        (call("sqrt", call("recip0", X)), "√(1/x)"),
        (call("maximum", X, -1), "max(x, −1)"),
        (call("lt", call("add", X, 1), Y), "x + 1 < y"),
        (call("not", call("lt", X, Y)), "not x < y"),
        (call("where", call("le", X, Y), X, 0), "where(x ≤ y, x, 0)"),
    ],
)
def test_formula(expr: Expr, text: str):
    assert formula(expr, ("x", "y")) == text


PROGRAM = """
graph(A: [M,N] = port, B: [K,N] = port, c: [M] = port, k: [N] = port) {
  p = dot(A, B)
  q = row_scale(A, c)
  r = col_shift(q, k)
  s = r - A
  t = r * s
  u = row_max(t)
  v = cast float16 (u)
  w = outer(c, k)
  z = exp(exp(exp(exp(exp(exp(exp(exp(exp(w)))))))))
  return p, v, z
}
"""


def test_labels_of_operators():
    graph = parse(PROGRAM)
    labels = [label(n, [graph.type_of(v) for v in n.operands]) for n in graph.nodes]

    assert labels == [
        "·", "x × ρ", "x + κ", "x − y", "×", "max N", "float16", "ρ κ", "f of 9 operations",
    ]  # fmt: skip
    assert [is_ordered(n) for n in graph.nodes] == [label == "x − y" for label in labels]


def test_summary_counts_and_names_operators_at_all_levels():
    graph = parse("""
    graph(X: M,N[M,N]) {
      Y = map M (x in X) {
        s = map N (p in !x) {
          r = row_sum(p)
          yield +r
        }
        e = exp(s)
        yield e
      }
      return Y
    }
    """)

    assert operations(graph) == 2
    assert summary(graph) == "∑ N  exp"
    assert summary(graph, most=1) == "∑ N  …"
