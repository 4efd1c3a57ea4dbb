"""factor-out-exp: in a sum, exp(x - m) becomes exp(x), and exp(-m) waits until after the sum.

before   s = map N (x in !X, r = r) {       after   s = map N (x in !X) {
           t = row_shift(x, r)                        e = exp(x)
           e = exp(t)                                 q = row_sum(e)
           q = row_sum(e)                             yield +q
           yield +q                                 }
         }                                          f = exp(r)
                                                    z = mul(s, f)

A softmax written with its own maximum (or with that of an attention sink) becomes one pass: it no
longer waits for m. exp(x) alone can overflow; ``safe`` carries it under a running maximum, and
there m cancels. As in factor-out, linear functions may stand between exp and the sum, and the rule
applies only if a node makes m and another map over the dim shares a list.
Termination: each application leaves a map with fewer exponentials of values that all its iterations
share.
Source: ours; exp(a + b) = exp(a) exp(b), as in online softmax.
"""

from __future__ import annotations

from dataclasses import replace

from blockbuster.ir.expr import Arg, Call, Const, Expr, call, rewrite
from blockbuster.ir.graph import Node, Value
from blockbuster.ir.ops import Map
from blockbuster.ir.origin import Origin
from blockbuster.rules.affine import Affine, Leaves
from blockbuster.rules.base import Match
from blockbuster.rules.by_dim import packed
from blockbuster.rules.linear_expressions import ONE, ZERO, NotAffine, Parts
from blockbuster.rules.shared_factor import Factor, LeavingFactor


class FactorOutExp(LeavingFactor):
    """Sums of what is linear in the exponential of a value."""

    name = "factor-out-exp"
    in_place = True

    def followed(self, op: Map, port: int, origin: Origin) -> Factor:
        powers = _Powers(op, Affine.of(op.body, Value(-1, port), origin))
        powers.values.follow()
        by, operands = powers.by
        ports = (port, *(value.port for value in operands))
        return Factor(powers.values, call("exp", _times(Arg(0), by)), ports)

    def describe(self, match: Match) -> str:
        return f"exp of {super().describe(match)}"


def _times(power: Expr, by: Expr) -> Expr:
    if by == ONE:
        return power
    by = rewrite(by, lambda e: Arg(e.index + 1) if isinstance(e, Arg) else e)
    return call("neg", power) if by == Const(-1.0) else call("mul", power, by)


class _Powers:
    """Exponentials of x + by * m, as exp(x) times exp(by * m): those with the first ``by``.

    ``by`` is an expression of operands that all iterations share (a temperature), or a number.
    """

    def __init__(self, op: Map, exponents: Affine) -> None:
        self.by: tuple[Expr, tuple[Value, ...]] = ONE, ()
        self.values = replace(exponents, parts={}, refused={}, own=self._of)
        self._op, self._exponents, self._found = op, exponents, False

    def _of(self, expr: Call, node: Node, leaves: Leaves) -> Parts[Expr] | None:
        """The parts of an exponential of operands of ``node``; None for any other function."""
        if expr.fn != "exp":
            return None
        try:
            power = self._exponents.split(expr.args[0], node, leaves)
        except NotAffine:
            return None
        if power.slope is None or not self._is_it(power.slope, leaves):
            return None
        return Parts(None, call("exp", power.rest or ZERO))

    def _is_it(self, slope: Expr, leaves: Leaves) -> bool:
        """Whether ``slope`` is ``by``: all iterations share it, and it is the first such."""
        by, used = packed(slope)
        operands = tuple(leaves[index] for index in used)
        if any(value.node >= 0 or self._op.iterated[value.port] for value in operands):
            return False
        types = self._op.body.types_of(operands)
        axes = max((self._exponents.axes, *(type.axes for type in types)), key=len)
        if any(type.buffered or not {*type.axes} <= {*axes} for type in types):
            return False
        if not self._found:
            self._found, self.by, self.values.axes = True, (by, operands), axes
        return self.by == (by, operands)
