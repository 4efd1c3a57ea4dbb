"""Logarithms of significands, and their exponents: in a sum the exponent comes first.

    c = -(log(S) + t)      x + n * c   is   (x - n * t) - n * log(S)

x - t is exact if x is near t, as scores are near their maximum; log(S) + t has already lost the
digits of log(S). A value is followed as a multiple of the logarithm plus a rest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from blockbuster.ir.expr import Arg, Call, Const, Expr, call, functions_of
from blockbuster.ir.graph import Node, Value
from blockbuster.rules.element_formulas import scalar_of
from blockbuster.rules.emitter import Emitter
from blockbuster.rules.linear_expressions import ONE, ZERO, NotAffine, Parts, split
from blockbuster.rules.pairs import Pair


@dataclass(frozen=True)
class Logarithm:
    """``large + small``: a part that exponents are in, and one that a logarithm is in.

    ``summed``: something was added to the large part. Then their sum has lost no digits that count.
    """

    large: Value
    small: Value
    summed: bool = False

    def each(self, change: Callable[[Value], Value]) -> Logarithm:
        """The same as seen from another level."""
        return Logarithm(change(self.large), change(self.small), self.summed)


def logarithm(
    to: Emitter,
    node: Node,
    known: Mapping[int, Logarithm],
    pairs: Mapping[int, Pair],
) -> Logarithm | None:
    """What ``node`` makes of logarithms, by operand, and of pairs whose logarithm it takes.

    None if it is not linear in one.
    """
    expr = scalar_of(node)
    if expr is None or node.types[0].buffered:
        return None
    used: dict[Logarithm, None] = {}

    def operand(arg: Arg) -> Parts[Expr]:
        if arg.index not in known:
            return Parts(arg, None)
        used[known[arg.index]] = None
        return Parts(None, ONE)

    def own(inner: Call) -> Parts[Expr] | None:
        (first, *_) = inner.args
        pair = pairs.get(first.index) if isinstance(first, Arg) and inner.fn == "log" else None
        whole = to.by_elements(pair) if pair else None
        if whole is None or not whole.terms:
            return None
        log = to.emit(call("log", to.leaf(whole.significand)))
        used[Logarithm(to.exponent(whole.terms), log)] = None
        return Parts(None, ONE)

    try:
        parts = split(expr, operand, own)
    except NotAffine:
        return None
    if parts.slope is None or len(used) != 1:
        return None
    (found,) = used
    return _times(to, parts, found, node)


def _times(to: Emitter, parts: Parts[Expr], found: Logarithm, node: Node) -> Logarithm:
    """The parts of ``rest + slope * (large + small)``, without axes that the node drops."""

    def product(value: Value) -> Expr:
        assert parts.slope is not None
        return _multiplied(parts.slope, to.leaf(value))

    large = product(found.large)
    if parts.rest is not None:
        large = call("add", parts.rest, large)

    def fitting(value: Value) -> Value:
        return to.with_axes(value, tuple(d for d in to.axes(value) if d in node.types[0].axes))

    small = product(found.small)
    summed = found.summed or parts.rest is not None
    return Logarithm(fitting(to.emit(large)), fitting(to.emit(small)), summed)


def _multiplied(slope: Expr, value: Expr) -> Expr:
    """``slope * value``, which is chosen where the slope is: 0 times an infinite value is NaN."""
    if slope in (ONE, ZERO):
        return value if slope == ONE else ZERO
    if slope == Const(-1.0):
        return call("neg", value)
    match slope:
        case Call("where", (test, *branches)):
            return call("where", test, *(_multiplied(branch, value) for branch in branches))
        case Call("neg", (inner,)):
            return call("neg", _multiplied(inner, value))
        case Call("div", (above, below)):
            return call("div", _multiplied(above, value), below)
        case Call("mul", (a, b)) if _chooses(a) or _chooses(b):
            first, second = (a, b) if _chooses(a) else (b, a)
            return _multiplied(first, _multiplied(second, value))
    return call("mul", slope, value)


def _chooses(expr: Expr) -> bool:
    return "where" in functions_of(expr)
