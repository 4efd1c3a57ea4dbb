"""Logarithms of significands, and their exponents: in a sum the exponent comes first.

    c = -(log(S) + t)      x + n * c   is   (x - n * t) - n * log(S)

x - t is exact if x is near t, as scores are near their maximum; log(S) + t has already lost the
digits of log(S). A value is followed as a multiple of the logarithm plus a rest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from blockbuster.ir.expr import Arg, Call, Const, Expr, arguments, call, functions_of
from blockbuster.ir.graph import Node, Value
from blockbuster.rules.element_formulas import scalar_of
from blockbuster.rules.emitter import Emitter
from blockbuster.rules.exponents import lifted_expression
from blockbuster.rules.linear_expressions import ONE, ZERO, without
from blockbuster.rules.pairs import Pair

LOG = Arg(-1)
"""The logarithm that an expression is followed as a function of."""


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
    expr = _marked(to, expr, known, pairs, used)
    if len(used) != 1 or _linear(expr, LOG) is None:
        return None
    (found,) = used
    large, small = (_linear(expr, to.leaf(value)) for value in (found.large, found.small))
    rest = without(expr, lambda leaf: None if leaf == LOG else leaf, ZERO)
    assert large is not None
    assert small is not None
    if rest is not None:
        large = call("add", rest, large)

    def fitting(part: Expr) -> Value:
        """A part, without axes that the node drops."""
        value = to.emit(part)
        return to.with_axes(value, tuple(d for d in to.axes(value) if d in node.types[0].axes))

    return Logarithm(fitting(large), fitting(small), found.summed or rest is not None)


def _marked(
    to: Emitter,
    expr: Expr,
    known: Mapping[int, Logarithm],
    pairs: Mapping[int, Pair],
    used: dict[Logarithm, None],
) -> Expr:
    """``expr`` with LOG for its logarithms, which are added to ``used``."""
    if isinstance(expr, Arg) and expr.index in known:
        used[known[expr.index]] = None
        return LOG
    if not isinstance(expr, Call):
        return expr
    (first, *_) = expr.args
    of_pairs = expr.fn == "log" and any(at in pairs for at in arguments(first))
    pair = lifted_expression(to, first, dict(pairs)) if of_pairs else None
    whole = to.by_elements(pair) if isinstance(pair, Pair) else None
    if whole is None or not whole.terms:
        return Call(expr.fn, tuple(_marked(to, arg, known, pairs, used) for arg in expr.args))
    log = to.emit(call("log", to.leaf(whole.significand)))
    used[Logarithm(to.exponent(whole.terms), log)] = None
    return LOG


def _linear(expr: Expr, value: Expr) -> Expr | None:
    """The terms with the logarithm, of ``value`` in its place; None if ``expr`` is not linear."""
    if expr == LOG:
        return value
    if not isinstance(expr, Call):
        return None
    parts = [_linear(arg, value) for arg in expr.args]
    given = [arg for arg, part in zip(expr.args, parts, strict=True) if part is None]
    held = [part for part in parts if part is not None]
    if any(LOG.index in arguments(arg) for arg in given):
        return None
    match (expr.fn, held, given):
        case ("add" | "sub" | "neg", [*_], []):
            return Call(expr.fn, tuple(held))
        case ("add", [part], _):
            return part
        case ("sub", [part], _):
            return part if parts[0] is not None else call("neg", part)
        case ("mul", [part], [factor]):
            return _multiplied(factor, part)
        case ("div", [part], [divisor]) if parts[0] is not None:
            return call("div", part, divisor)
        case ("where", [*_], [test, *_]) if held and parts[0] is None:
            return Call("where", (test, *(part or ZERO for part in parts[1:])))
    return None


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
