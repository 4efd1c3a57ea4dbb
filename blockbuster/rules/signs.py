"""Values that cannot be negative for any inputs: those made of exponentials.

Squares and absolute values are not negative either, but proofs cannot use it: they decide signs
only of polynomials in exponentials.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from blockbuster.ir.expr import Arg, Call, Const, Expr, Size
from blockbuster.ir.graph import Graph, Node, Value
from blockbuster.ir.ops import (
    Cast,
    Elementwise,
    Functional,
    Map,
    Pointwise,
    Reduce,
    Relabel,
    Rescale,
    Transpose,
)

DEEPEST = 12
"""How many operators a value is followed through."""

IF_ALL = frozenset({"add", "mul", "div", "reciprocal", "recip0"})
"""Functions whose results are not negative if no operand is."""

FUNCTIONALS = frozenset({
    "add", "mul", "div", "row_shift", "row_scale", "col_shift", "col_scale",
    "row_sum", "row_prod", "row_max", "row_min", "dot", "outer",
})  # fmt: skip


class Around(NamedTuple):
    """The map whose body a value is in, and the graph that the map is in."""

    graph: Graph
    node: Node
    around: Around | None


def not_negative(
    graph: Graph, value: Value, around: Around | None = None, left: int = DEEPEST
) -> bool:
    """True if the elements of ``value`` are not negative. False where that does not show.

    Inputs of the outermost ``graph`` may be anything; ``left`` operators are looked at in a row.
    """
    if left == 0 or (value.node < 0 and around is None):
        return False
    if value.node < 0:
        assert around is not None
        operand = around.node.operands[value.port]
        return not_negative(around.graph, operand, around.around, left - 1)
    node = graph.nodes[value.node]

    def of(position: int) -> bool:
        return not_negative(graph, node.operands[position], around, left - 1)

    match node.op:
        case Map(results=results, start=0) if not isinstance(results[value.port], Rescale):
            body = node.op.body
            inside = body.outputs[value.port].value
            return not_negative(body, inside, Around(graph, node, around), left - 1)
        case Elementwise(expr) | Pointwise(expr):
            return _expression(expr, of)
        case Functional(name) if name in FUNCTIONALS:
            return all(map(of, range(len(node.operands))))
        case Cast() | Relabel() | Transpose() | Reduce():
            return of(0)
    return False


def _expression(expr: Expr, of: Callable[[int], bool]) -> bool:
    match expr:
        case Arg(index):
            return of(index)
        case Const(value):
            return value >= 0
        case Size():
            return True
        case Call(fn, args) if fn in IF_ALL:
            return all(_expression(arg, of) for arg in args)
        case Call("where", (_, *chosen)):
            return all(_expression(arg, of) for arg in chosen)
    return isinstance(expr, Call) and expr.fn == "exp"
