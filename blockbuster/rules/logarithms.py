"""Logarithms of significands, and their exponents: in a sum the exponent comes first.

    c = -(log(S) + t)      x + n * c   is   (x - n * t) - n * log(S)

x - t is exact if x is near t, as scores are near their maximum; log(S) + t has already lost the
digits of log(S). A value is followed as a multiple of the logarithm plus a rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from blockbuster.ir.expr import Arg, Call, Const, Expr, call
from blockbuster.ir.graph import Node, Value
from blockbuster.ir.ops import Elementwise, Functional, Pointwise
from blockbuster.rules.by_dim import SCALAR_FUNCTIONS
from blockbuster.rules.emitter import Emitter
from blockbuster.rules.linear_expressions import ONE, NotAffine, Parts, split
from blockbuster.rules.pairs import Pair


@dataclass(frozen=True)
class Logarithm:
    """``large + small``: a part that exponents are in, and one that a logarithm is in."""

    large: Value
    small: Value


def logarithm(
    to: Emitter,
    node: Node,
    known: Mapping[int, Logarithm],
    pairs: Mapping[int, Pair],
) -> tuple[Logarithm, bool] | None:
    """A vector node's multiples of logarithms, by operand, and of pairs whose logarithm it takes.

    Also whether something is added, so that the order counts. None if it is not linear in one.
    """
    expr = _scalar(node)
    if expr is None or len(node.types[0].axes) > 1 or node.types[0].buffered:
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
        if pair is None or not pair.terms or to.is_block(pair):
            return None
        log = to.emit(call("log", to.leaf(pair.significand)))
        used[Logarithm(to.exponent(pair.terms), log)] = None
        return Parts(None, ONE)

    try:
        parts = split(expr, operand, own)
    except NotAffine:
        return None
    if parts.slope is None or len(used) != 1:
        return None
    (found,) = used
    made = _times(to, parts, found, node)
    return None if made is None else (made, parts.rest is not None)


def _times(to: Emitter, parts: Parts[Expr], found: Logarithm, node: Node) -> Logarithm | None:
    """The parts of ``rest + slope * (large + small)``; None if neither has the node's axes."""

    def product(value: Value) -> Expr:
        slope = parts.slope
        assert slope is not None
        if slope == ONE:
            return to.leaf(value)
        minus = slope == Const(-1.0)
        return call("neg", to.leaf(value)) if minus else call("mul", slope, to.leaf(value))

    large = product(found.large)
    if parts.rest is not None:
        large = call("add", parts.rest, large)
    axes = node.types[0].axes
    made = [to.emit(part) for part in (large, product(found.small))]
    if _changes_axes(to, node):
        made = [to.with_axes(value, axes) for value in made]
    return Logarithm(*made) if axes in map(to.axes, made) else None


def _changes_axes(to: Emitter, node: Node) -> bool:
    """True if the node drops or adds an axis of one element.

    Elsewhere a number stays a number: as a vector over a dim it would say that blocks have one
    element along it (``list_only``).
    """
    shown = {dim for leaf in to.leaves[: len(node.operands)] for dim in to.axes(leaf)}
    return shown != set(node.types[0].axes)


def _scalar(node: Node) -> Expr | None:
    match node.op:
        case Elementwise(expr) | Pointwise(expr, _):
            return expr
        case Functional(name) if name in SCALAR_FUNCTIONS:
            return call(SCALAR_FUNCTIONS[name], Arg(0), Arg(1))
    return None
