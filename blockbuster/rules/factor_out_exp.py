"""factor-out-exp: exp(x - m) in a sum is exp(x), and exp(-m) waits until after the sum.

before   s = map N (x in !X, r = r) {       after   s = map N (x in !X) {
           t = row_shift(x, r)                        e = exp(x)
           e = exp(t)                                 q = row_sum(e)
           q = row_sum(e)                             yield +q
           yield +q                                 }
         }                                          f = exp(r)
                                                    z = mul(s, f)

A softmax written out with its own maximum (or with that of an attention sink) becomes one pass: m
is no longer waited for. exp(x) alone can overflow; ``safe`` carries it under a running maximum, and
there m cancels. As in factor-out, linear functions may stand between exp and the sum, and the rule
applies only where m is made by a node and another map over the dim shares a list.
Ends: each application leaves a map with fewer exponentials of what all its iterations share.
Source: ours; exp(a + b) = exp(a) exp(b), as in online softmax.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from blockbuster.ir.builder import Builder
from blockbuster.ir.expr import Arg, Call, Const, Expr, arguments, call
from blockbuster.ir.graph import Graph, Node, Value
from blockbuster.ir.ops import Map, Op
from blockbuster.ir.origin import Origin
from blockbuster.rules.affine import Affine, Leaf
from blockbuster.rules.base import Kind, LocalRule, Match, Note, label
from blockbuster.rules.linear_expressions import ONE, ZERO, NotAffine, Parts, split
from blockbuster.rules.shared_factor import Factor, leaving_factor, taken_out


@dataclass(frozen=True)
class FactorOutExp(LocalRule):
    """Sums of what is linear in the exponential of a value."""

    name: ClassVar[str] = "factor-out-exp"
    kind: ClassVar[Kind] = "companion"
    needs: ClassVar[tuple[type[Op], ...]] = (Map,)
    in_place: ClassVar[bool] = True

    def matches_at(
        self, graph: Graph, position: int, note: Note = lambda _: None
    ) -> Iterator[Match]:
        yield from leaving_factor(self, _followed, graph, position, note)

    def apply(self, match: Match) -> Graph:
        return taken_out(match, _followed)

    def describe(self, match: Match) -> str:
        return f"exp of {match.detail} leaves {label(match.node('map'))}"


def _followed(op: Map, port: int, origin: Origin) -> Factor:
    shared = Value(-1, port)
    axes = op.body.type_of(shared).axes
    exponents = Affine(op.body, Builder(op.body), axes, origin)
    exponents.parts[shared] = Parts(None, ONE)
    exponents.follow()
    powers = _Powers(exponents)
    found = Affine(op.body, exponents.builder, axes, origin, own=powers.of)
    found.follow()
    return Factor(found, call("exp", _times(Arg(0), powers.by or ONE)))


def _times(power: Expr, by: Expr) -> Expr:
    if by == ONE:
        return power
    return call("neg", power) if by == Const(-1.0) else call("mul", power, by)


class _Powers:
    """Exponentials of x + by * m, as exp(x) times exp(by * m): those with the first ``by``."""

    def __init__(self, exponents: Affine) -> None:
        self.by: Expr | None = None
        self._exponents = exponents

    def of(self, expr: Call, node: Node, leaf: Leaf) -> Parts[Expr] | None:
        """The parts of an exponential of operands of ``node``; None for any other function."""
        if expr.fn != "exp":
            return None

        def operand(arg: Arg) -> Parts[Expr]:
            value = node.operands[arg.index]
            parts = self._exponents.parts.get(value)
            return Parts(leaf(parts.rest), leaf(parts.slope)) if parts else Parts(leaf(value), None)

        try:
            power = split(expr.args[0], operand)
        except NotAffine:
            return None
        if power.slope is None or arguments(power.slope):
            return None
        if self.by is None:
            self.by = power.slope
        if power.slope != self.by:
            return None
        return Parts(None, call("exp", power.rest or ZERO))
