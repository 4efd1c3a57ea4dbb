"""The constants of programs: inputs near them may take another branch of a comparison."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from blockbuster.ir.expr import Const, Expr, functions_of, rewrite
from blockbuster.ir.graph import Graph, Index
from blockbuster.ir.ops import Elementwise, Pointwise

COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")
FARTHEST = 62  # positions that trials reach: their work grows with the square of sizes
LARGE = 2.0**20  # numbers beside which 1 is little


def constants_of(*graphs: Graph) -> tuple[float, ...]:
    """The finite numbers that programs mention, each once."""
    return constants_in(expressions_of(graphs))


def constants_in(expressions: Iterable[Expr]) -> tuple[float, ...]:
    """The finite numbers in scalar expressions, each once."""
    found: dict[float, None] = {}

    def note(expr: Expr) -> Expr:
        if isinstance(expr, Const) and math.isfinite(expr.value):
            found.setdefault(expr.value)
        return expr

    for expr in expressions:
        rewrite(expr, note)
    return tuple(found)


def compares(*graphs: Graph) -> bool:
    """True if a program compares numbers, other than by max and min."""
    return any(fn in COMPARISONS for expr in expressions_of(graphs) for fn in functions_of(expr))


def beyond(graph: Graph) -> frozenset[float]:
    """The numbers of a program with masks by position that no trial's positions get to."""
    if not any(isinstance(given.view, Index) for given in graph.inputs) or not compares(graph):
        return frozenset()
    return frozenset(c for c in constants_of(graph) if abs(c) > FARTHEST)


def expressions_of(graphs: Sequence[Graph]) -> Iterator[Expr]:
    """The scalar expressions of the operators of programs."""
    for graph in graphs:
        for _, level in graph.walk():
            for node in level.nodes:
                if isinstance(node.op, Elementwise | Pointwise):
                    yield node.op.expr
