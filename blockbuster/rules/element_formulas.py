"""Element formulas: each element of a body's values as an expression.

The leaves of an expression are values that no scalar function makes. Two values with one formula
have the same elements, however their operators were fused. Axes have names, so the indices identify
an element of an operand.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

from blockbuster.ir.expr import Arg, Call, Expr, call, calls, functions_of, substitute
from blockbuster.ir.graph import Graph, Node, Value
from blockbuster.ir.ops import ROW_FOLDS, Collect, Elementwise, Functional, Map, Op, Pointwise
from blockbuster.rules.base import maker_of, map_of
from blockbuster.rules.by_dim import SCALAR_FUNCTIONS

MOST = 256
"""How many functions a formula applies at most; a value that takes more stands for itself."""


class Formulas:
    """Formulas over numbered leaves: equal leaves have one number, whichever body they are of."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}
        self._makers: dict[int, tuple[Op, tuple[Expr, ...]]] = {}

    def leaf(self, key: Hashable) -> Arg:
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

    def applied(self, node: Node, operands: Sequence[Expr]) -> Expr:
        """The formula of what a scalar function makes of such operands."""
        return self._made(node, 0, tuple(operands))

    def key(self, index: int) -> Hashable:
        """What the leaf of this number stands for."""
        return next(key for key, number in self._numbers.items() if number == index)

    def _made(self, node: Node, port: int, operands: tuple[Expr, ...]) -> Expr:
        expr = scalar_of(node)
        if expr is not None:
            found = substitute(expr, operands)
            if calls(found) <= MOST:
                return found
        made = self.leaf((node.op, port, operands))
        self._makers[made.index] = node.op, operands
        return made

    def reads(self, expr: Expr, leaf: Expr) -> bool:
        """True if ``expr`` depends on ``leaf``, through operators of all kinds."""
        seen, left = set[Expr](), [expr]
        while left:
            found = left.pop()
            if found == leaf:
                return True
            if found in seen:
                continue
            seen.add(found)
            if isinstance(found, Call):
                left += found.args
            elif isinstance(found, Arg):
                left += self._operands(found)
        return False

    def summand(self, expr: Expr, leaf: Expr) -> Expr:
        """The operand that depends on ``leaf`` of the dot that makes ``expr``; else ``expr``.

        A dot sums products of its operands, so it is linear in each of them.
        """
        if not isinstance(expr, Arg) or self._makers.get(expr.index, ("",))[0] != Functional("dot"):
            return expr
        waiting = [operand for operand in self._operands(expr) if self.reads(operand, leaf)]
        return waiting[0] if len(waiting) == 1 else expr

    def _operands(self, made: Arg) -> tuple[Expr, ...]:
        return self._makers[made.index][1] if made.index in self._makers else ()


def scalar_of(node: Node) -> Expr | None:
    """The scalar function that ``node`` applies to elements; None if it does something else."""
    match node.op:
        case Elementwise(expr) | Pointwise(expr):
            return expr
        case Functional(name) if name in SCALAR_FUNCTIONS:
            return call(SCALAR_FUNCTIONS[name], Arg(0), Arg(1))
    return None


def applies(node: Node, fn: str) -> bool:
    """True if ``node`` applies the scalar function ``fn`` to elements."""
    expr = scalar_of(node)
    return expr is not None and fn in functions_of(expr)


# What a map folds, element by element ------------------------------------------------------


def entering(formulas: Formulas, node: Node, made: Mapping[Value, Expr]) -> list[Expr]:
    """The formulas of what enters the body of a map: equal for the same items of the same value."""
    given = zip(node.operands, map_of(node).iterated, strict=True)
    return [made.get(v) or formulas.leaf((v, walks)) for v, walks in given]


def folded_of(node: Node, port: int, formulas: Mapping[Value, Expr]) -> Expr:
    """What a result of a map is folded from, element by element."""
    return formulas[before_rows(map_of(node), port)]


def before_rows(op: Map, port: int) -> Value:
    """What a map folds its result ``port`` from, before a fold of rows."""
    value, result = op.body.outputs[port].value, op.results[port]
    assert not isinstance(result, Collect)
    maker = maker_of(op.body, value)
    if maker is not None and maker.op == Functional(ROW_FOLDS[result.monoid]):
        return maker.operands[0]
    return value
