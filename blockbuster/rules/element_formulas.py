"""Element formulas: each element of a body's values as an expression.

The leaves of an expression are values that no scalar function makes. Two values with one formula
have the same elements, however their operators were fused. Axes have names, so the indices identify
an element of an operand.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from blockbuster.ir.expr import Arg, Expr, call, calls, substitute
from blockbuster.ir.graph import Graph, Node, Value
from blockbuster.ir.ops import Elementwise, Functional, Pointwise
from blockbuster.rules.by_dim import SCALAR_FUNCTIONS

MOST = 256
"""How many functions a formula applies at most; a value that takes more stands for itself."""


class Formulas:
    """Formulas over numbered leaves: equal leaves have one number, whichever body they are of."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}

    def leaf(self, key: Hashable) -> Expr:
        """The value that ``key`` names, as an argument of formulas."""
        return Arg(self._numbers.setdefault(key, len(self._numbers)))

    def of(self, body: Graph, inputs: Sequence[Expr]) -> dict[Value, Expr]:
        """The formula of every value of ``body``, from those of its inputs."""
        made = {Value(-1, port): formula for port, formula in enumerate(inputs)}
        for position, node in enumerate(body.nodes):
            operands = tuple(made[value] for value in node.operands)
            for port in range(len(node.types)):
                made[Value(position, port)] = self._made(node, port, operands)
        return made

    def _made(self, node: Node, port: int, operands: tuple[Expr, ...]) -> Expr:
        expr = _scalar(node)
        if expr is not None:
            found = substitute(expr, operands)
            if calls(found) <= MOST:
                return found
        return self.leaf((node.op, port, operands))


def _scalar(node: Node) -> Expr | None:
    """The scalar function that ``node`` applies to elements; None if it does something else."""
    match node.op:
        case Elementwise(expr) | Pointwise(expr):
            return expr
        case Functional(name) if name in SCALAR_FUNCTIONS:
            return call(SCALAR_FUNCTIONS[name], Arg(0), Arg(1))
    return None
