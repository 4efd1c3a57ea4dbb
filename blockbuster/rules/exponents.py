"""Significand-exponent pairs: a value S * exp(t), with t one number per row, or per element.

``t`` is kept as a formal sum of values with coefficients, so t - t cancels because it is one
value, not because two floats happen to be equal. A single exponent for a whole block would turn
rows far below the block's maximum into 0/0. Elements have exponents of their own if blocks are
added up or read by columns; where a row is reduced, they come under one exponent per row.
Source: Blockbuster Part 1, appendix.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from blockbuster.ir.expr import Arg, Call, Const, Expr, arguments, call
from blockbuster.ir.graph import Value
from blockbuster.ir.ops import Functional
from blockbuster.rules.emitter import Emitter
from blockbuster.rules.pairs import (
    Pair,
    Product,
    Terms,
    above_its_exponent,
    balanced,
    multiplied,
)

# scalar functions ---------------------------------------------------------------

Part = Pair | Expr
Lift = Callable[[Emitter, tuple[Part, ...]], "Part | None"]


def _expr(to: Emitter, part: Part) -> Expr:
    return to.leaf(part.significand) if isinstance(part, Pair) else part


def _terms(part: Part | Value) -> Terms:
    return part.terms if isinstance(part, Pair) else ()


def _known_product(
    to: Emitter, first: Part | Value, second: Part | Value, sign: float
) -> Product | None:
    """What is known of a product (or quotient) beside its significand and terms."""
    parts = (first, second)
    if not any(isinstance(part, Pair) and part.product for part in parts):
        return None
    a, b = (to.emit(p) if isinstance(p, Expr) and arguments(p) else p for p in parts)
    if above_its_exponent(b, sign):
        return None
    if sign < 0 and isinstance(b, Pair):
        b = replace(b, product=None)  # exp(x - y) would be 0 where exp(x) / exp(y) is 0 / 0
    return multiplied(a, b, sign)


def _power(fn: str, by: float) -> Lift:
    """A power-like function: f(S exp(t)) = f(S) exp(by * t).

    For a block only if by is 1: elements far below their row's maximum have lost their significand.
    """

    def lift(to: Emitter, parts: tuple[Part, ...]) -> Part | None:
        (pair,) = parts
        assert isinstance(pair, Pair)
        if to.is_block(pair) and by != 1.0:
            return None
        terms = tuple((coefficient * by, value) for coefficient, value in pair.terms)
        return Pair(to.emit(call(fn, to.leaf(pair.significand))), terms)

    return lift


def _multiply(to: Emitter, parts: Sequence[Part | Value], sign: float) -> bool:
    """False for two blocks of which one has shared exponents, and for a quotient by such a one."""
    shared = [isinstance(part, Pair) and to.is_block(part) for part in parts]
    pairs = [part for part in parts if isinstance(part, Pair)]
    both = len(pairs) == 2 and all(len(to.axes(pair.significand)) == 2 for pair in pairs)
    return not (both and any(shared)) and not (sign < 0 and shared[1])


def _product(fn: str, sign: float) -> Lift:
    """Exponents add (or subtract); row maxima of two blocks say nothing about their product's."""

    def lift(to: Emitter, parts: tuple[Part, ...]) -> Part | None:
        if not _multiply(to, parts, sign):
            return None
        significand = to.emit(call(fn, *(_expr(to, part) for part in parts)))
        first, second = map(_terms, parts)
        known = _known_product(to, parts[0], parts[1], sign)
        both = to.joined(first, second, sign)
        return Pair(significand, both, known, balanced=balanced(first, second, sign))

    return lift


def _sum(fn: str) -> Lift:
    def lift(to: Emitter, parts: tuple[Part, ...]) -> Part | None:
        a, b = parts
        if not isinstance(a, Pair) or not isinstance(b, Pair):
            return None
        left, right, terms = to.on_common_exponent(a, b)
        return Pair(to.emit(call(fn, to.leaf(left), to.leaf(right))), terms)

    return lift


def _log(to: Emitter, parts: tuple[Part, ...]) -> Part | None:
    (pair,) = parts
    assert isinstance(pair, Pair)
    if to.is_block(pair) or not pair.terms:
        return None
    t = to.leaf(to.exponent(pair.terms))
    return call("add", call("log", to.leaf(pair.significand)), t)


def _where(to: Emitter, parts: tuple[Part, ...]) -> Part | None:
    test, *branches = parts
    if isinstance(test, Pair):
        return None
    for at, (pair, other) in enumerate((branches, branches[::-1])):
        if isinstance(pair, Pair) and pair.product and other == Const(0.0):
            return _masked(to, test, pair.product, holds=at == 0)
    exponents = dict.fromkeys(part.terms for part in branches if isinstance(part, Pair))
    zero = Const(0.0)
    if len(exponents) != 1 or any(not isinstance(b, Pair) and b != zero for b in branches):
        return None
    significand = to.emit(call("where", test, *(_expr(to, b) for b in branches)))
    return Pair(significand, next(iter(exponents)))


def _masked(to: Emitter, test: Expr, product: Product, *, holds: bool) -> Pair:
    """``product`` where ``test`` is ``holds``, and 0 elsewhere.

    What is 0 has no part in the exponents: the others could be lost below it, and it could be
    infinite.
    """

    def selected(first: Expr, second: float) -> Expr:
        branches = (first, Const(second))
        return Call("where", (test, *(branches if holds else branches[::-1])))

    power = to.leaf(to.exponent(product.terms))
    pair = to.exponential(to.emit(selected(power, -math.inf)))
    if not product.factors:
        return pair
    significand = to.times(product.factors, to.leaf(pair.significand))
    return Pair(to.emit(selected(significand, 0.0)), pair.terms)


# scalar function -> what it makes where at least one part is a pair; None: it needs plain values
LIFTS: dict[str, Lift] = {
    "neg": _power("neg", 1.0),
    "abs": _power("abs", 1.0),
    "reciprocal": _power("reciprocal", -1.0),
    "recip0": _power("recip0", -1.0),
    "square": _power("square", 2.0),
    "sqrt": _power("sqrt", 0.5),
    "rsqrt": _power("rsqrt", -0.5),
    "mul": _product("mul", 1.0),
    "div": _product("div", -1.0),
    "add": _sum("add"),
    "sub": _sum("sub"),
    "log": _log,
    "where": _where,
}


def lifted_expression(to: Emitter, expr: Expr, pairs: dict[int, Pair]) -> Part:
    """``expr`` over pairs (by argument) and plain leaves, evaluated from the leaves up.

    Where a function cannot take a pair, that argument stays as written, or, for a quotient of
    exponentials, is materialized.
    """
    if isinstance(expr, Arg):
        return pairs.get(expr.index, expr)
    if not isinstance(expr, Call):
        return expr
    parts = tuple(lifted_expression(to, a, pairs) for a in expr.args)
    if expr.fn == "exp":
        power = _plain(to, parts[0], expr.args[0])
        if _to_be_lifted(to, power):
            return to.exponential(to.emit(power))
    if any(isinstance(part, Pair) for part in parts):
        made = LIFTS[expr.fn](to, parts) if expr.fn in LIFTS else None
        if isinstance(made, Pair) and not made.terms:
            return to.leaf(made.significand)  # the exponents cancel
        if made is not None:
            return made
    plain = (_plain(to, part, a) for part, a in zip(parts, expr.args, strict=True))
    return Call(expr.fn, tuple(plain))


def _plain(to: Emitter, part: Part, written: Expr) -> Expr:
    if not isinstance(part, Pair):
        return part
    return to.leaf(to.materialized(part)) if part.is_quotient else written


def _to_be_lifted(to: Emitter, inner: Expr) -> bool:
    """False for a constant, and for the exp of a sub0: what this pass itself makes."""
    if isinstance(inner, Call) and inner.fn == "sub0":
        return False
    if isinstance(inner, Arg):
        made = to.builder.expr_of(to.leaves[inner.index])
        return not (isinstance(made, Call) and made.fn == "sub0")
    return bool(arguments(inner))


# functional operators -----------------------------------------------------------


def lifted_functional(to: Emitter, name: str, args: tuple[Pair | Value, ...]) -> Pair | None:
    """The result of a functional operator of Table 1 on pairs; None if it needs plain values."""
    first = args[0]
    second = args[-1]
    if name in ("row_sum", "row_max", "row_min") and isinstance(first, Pair):
        return to.row_total(name, first)
    if name in ("add", "sub"):
        if isinstance(first, Pair) and isinstance(second, Pair):
            left, right, terms = to.on_common_exponent(first, second)
            return Pair(to.apply(Functional(name), left, right), terms)
        return None
    if name not in ("mul", "div", "row_scale", "col_scale", "dot", "outer"):
        return None
    own = isinstance(first, Pair) and not to.is_block(first)
    if isinstance(second, Pair) and (name in ("dot", "outer") or (name == "col_scale" and not own)):
        return None  # the exponents would belong to columns
    if name == "dot" and isinstance(first, Pair):
        first = to.by_rows(first)
    sign = -1.0 if name == "div" else 1.0
    if not _multiply(to, (first, second), sign):
        return None
    values = (a.significand if isinstance(a, Pair) else a for a in (first, second))
    given = _terms(first), _terms(second)
    known = None
    if name not in ("dot", "outer"):
        known = _known_product(to, first, second, sign)
    made, both = to.apply(Functional(name), *values), to.joined(*given, sign)
    return Pair(made, both, known, balanced=balanced(*given, sign))
