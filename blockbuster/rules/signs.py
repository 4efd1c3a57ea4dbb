"""The signs that values may have, for all that the operators above them show."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from blockbuster.ir.expr import arguments
from blockbuster.ir.graph import Graph, Node, Value
from blockbuster.ir.ops import (
    MONOID_OF,
    Accumulate,
    Cast,
    Functional,
    Map,
    Reduce,
    Relabel,
    Rescale,
    Transpose,
)
from blockbuster.rules.element_formulas import scalar_of
from blockbuster.rules.separate import ANY, NEGATIVE, POSITIVE, product_of_signs, signs_of

DEEPEST = 12
"""How many operators a value is followed through."""

PROVABLE = frozenset({"exp", "add", "sub", "neg", "mul", "div", "reciprocal", "recip0", "where"})
"""Functions of whose results proofs decide the sign: those that make polynomials in exponentials.

Squares and absolute values are not negative either, but proofs cannot use it.
"""


class Around(NamedTuple):
    """The map whose body a value is in, and the graph that the map is in."""

    graph: Graph
    node: Node
    around: Around | None


def signs_of_value(
    graph: Graph,
    value: Value,
    around: Around | None = None,
    *,
    left: int = DEEPEST,
    trusted: frozenset[str] | None = None,
) -> str:
    """The signs that elements of ``value`` may have; inputs of the outermost graph may have any.

    ``left`` operators are looked at in a row, and what functions do that are not ``trusted``, if
    some are, does not count.
    """
    if left == 0 or (value.node < 0 and around is None):
        return ANY
    if value.node < 0:
        assert around is not None
        graph, value, around = around.graph, around.node.operands[value.port], around.around
        return signs_of_value(graph, value, around, left=left - 1, trusted=trusted)
    node = graph.nodes[value.node]

    def of(position: int) -> str:
        operand = node.operands[position]
        return signs_of_value(graph, operand, around, left=left - 1, trusted=trusted)

    expr = scalar_of(node)
    if expr is not None:
        return signs_of(expr, {at: of(at) for at in arguments(expr)}, trusted)
    if not isinstance(node.op, Map):
        return _of_operator(node, of)
    result, end = node.op.results[value.port], node.op.body.outputs[value.port].value
    if node.op.start or isinstance(result, Rescale):
        return ANY
    inner = Around(graph, node, around)
    signs = signs_of_value(node.op.body, end, inner, left=left - 1, trusted=trusted)
    return signs_of_fold(result.monoid, signs) if isinstance(result, Accumulate) else signs


def _of_operator(node: Node, of: Callable[[int], str]) -> str:
    """The signs of what an operator makes of operands with the signs ``of(0)``, ``of(1)``."""
    match node.op:
        case Functional("dot"):
            return signs_of_fold("+", product_of_signs(of(0), of(1)))
        case Functional(name) if name in MONOID_OF:
            return signs_of_fold(MONOID_OF[name], of(0))
        case Reduce(_, monoid):
            return signs_of_fold(monoid, of(0))
        case Cast() | Relabel() | Transpose():
            return of(0)
    return ANY


def signs_of_fold(monoid: str, signs: str) -> str:
    """The signs of a fold of elements that may have ``signs``."""
    kept = NEGATIVE not in signs or (monoid == "+" and POSITIVE not in signs)
    return signs if kept or monoid in ("max", "min") else ANY
