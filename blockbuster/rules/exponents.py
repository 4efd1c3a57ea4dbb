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
from functools import partial

from blockbuster.ir.expr import Arg, Call, Const, Expr, arguments, call
from blockbuster.ir.graph import Value
from blockbuster.ir.ops import MONOID_OF, Functional
from blockbuster.ir.types import Dim
from blockbuster.rules.emitter import Emitter
from blockbuster.rules.extrema import by_logarithms, extremum
from blockbuster.rules.pairs import (
    Counts,
    Pair,
    Product,
    Terms,
    above_its_exponent,
    counted,
    multiplied,
    product_of,
)
from blockbuster.rules.separate import signs_of

HALF = call("mul", Arg(0), 0.5)

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
    known = multiplied(a, b, sign)
    given = {v for part in (a, b) for _, v in product_of(part).terms}
    if len(known.terms) == len(given) and to.joined(known.terms, ()) == known.terms:
        return known
    return multiplied(_by_significand(to, a), _by_significand(to, b), sign)


def _by_significand(to: Emitter, part: Part | Value) -> Part | Value:
    """A part without a known product; the significand of one whose exponents cancel is 0 or NaN.

    exp(x) / exp(x) is 0 / 0 where x is -inf.
    """
    own = to.by_elements(part) if isinstance(part, Pair) else None
    return replace(own, product=None) if own else part


def _power(fn: str, by: float) -> Lift:
    """A power-like function: f(S exp(t)) = f(S) exp(by * t)."""

    def lift(to: Emitter, parts: tuple[Part, ...]) -> Part | None:
        (pair,) = parts
        assert isinstance(pair, Pair)
        own = pair if fn == "neg" else to.by_elements(pair)
        own = pair if own is None and fn == "abs" else own
        if own is None:
            return None
        terms = tuple((coefficient * by, value) for coefficient, value in own.terms)
        counts = pair.counts if by > 0 else pair.counts.inverted
        made = to.emit(call(fn, to.leaf(own.significand)))
        product = own.product.negated if fn == "neg" and own.product else None
        return Pair(made, terms, product, counts, own.shared)

    return lift


def _to_multiply(to: Emitter, parts: Sequence[Part | Value], sign: float) -> dict[int, Pair] | None:
    """The pairs among two factors (or dividend and divisor); None if they may not be combined.

    A divisor must not have lost any element; nor may a factor, if the other is larger where it is
    small: row maxima of two blocks say nothing about their product's.
    """
    pairs = {at: part for at, part in enumerate(parts) if isinstance(part, Pair)}
    for at, pair in tuple(pairs.items()):
        row, other = to.axes(pair.significand)[-1:], parts[1 - at]
        unlike = isinstance(other, Pair) and (other.shared or any(to.varies(other, d) for d in row))
        if unlike or (sign < 0 and at == 1):
            own = to.by_elements(pair)
            if own is None:
                return None
            pairs[at] = own
    return pairs


def _product(fn: str, sign: float) -> Lift:
    """Exponents add (or subtract)."""

    def lift(to: Emitter, parts: tuple[Part, ...]) -> Part | None:
        pairs = _to_multiply(to, parts, sign)
        if pairs is None:
            return None
        first, second = (pairs.get(at, part) for at, part in enumerate(parts))
        significand = to.emit(call(fn, _expr(to, first), _expr(to, second)))
        known = _known_product(to, first, second, sign)
        both = to.joined(_terms(first), _terms(second), sign)
        shared = any(pair.shared for pair in pairs.values())
        return Pair(significand, both, known, counted(first, second, sign), shared)

    return lift


def _sum(fn: str) -> Lift:
    """A sum or an extremum: both significands come under one exponent, the larger."""

    def lift(to: Emitter, parts: tuple[Part, ...]) -> Part | None:
        a, b = parts
        if not isinstance(a, Pair) or not isinstance(b, Pair):
            return None
        left, right, terms = to.on_common_exponent(a, b)
        made = to.emit(call(fn, to.leaf(left), to.leaf(right)))
        return Pair(made, terms, shared=a.shared or b.shared)

    return lift


def _extremum(to: Emitter, parts: tuple[Part, ...], expr: Call) -> Part | None:
    """``maximum`` or ``minimum``: as a sum, unless it is the least of elements apart."""
    a, b = parts
    if isinstance(a, Pair) and isinstance(b, Pair) and (a.terms != b.terms or a.shared or b.shared):
        known = {at: to.signs(at) for at in arguments(expr)}
        signs = "".join(signs_of(arg, known) for arg in expr.args)
        made = [by_logarithms(to, expr.fn[:3], signs, pair) for pair in (a, b)]
        own = [pair for pair in made if pair is not None]
        if len(own) == len(parts):
            significand = Call(expr.fn, tuple(to.leaf(pair.significand) for pair in own))
            least = call("minimum", *(to.leaf(pair.terms[0][1]) for pair in own))
            return extremum(expr.fn[:3], to.emit(significand), to.emit(least))
    return _sum(expr.fn)(to, parts)


def _log(to: Emitter, parts: tuple[Part, ...]) -> Part | None:
    (pair,) = parts
    assert isinstance(pair, Pair)
    own = to.by_elements(pair)
    if own is None or not own.terms:
        return None
    t = to.leaf(to.exponent(own.terms))
    return call("add", call("log", to.leaf(own.significand)), t)


def _where(to: Emitter, parts: tuple[Part, ...]) -> Part | None:
    test, *branches = parts
    if isinstance(test, Pair):
        return None
    for at, (pair, other) in enumerate((branches, branches[::-1])):
        if isinstance(pair, Pair) and pair.product and other == Const(0.0):
            return _masked(to, test, pair.product, holds=at == 0)
    pairs = [part for part in branches if isinstance(part, Pair)]
    zero = Const(0.0)
    if any(not isinstance(b, Pair) and b != zero for b in branches):
        return None
    terms = pairs[0].terms
    if any(pair.terms != terms for pair in pairs):
        own = [made for pair in pairs if (made := to.by_elements(pair)) is not None]
        if len(own) < len(pairs):
            return None
        pairs, branches = own, [*own]
        powers = [to.leaf(to.exponent(pair.terms)) for pair in pairs]
        terms = ((1.0, to.emit(call("where", test, *powers))),)
    significand = to.emit(call("where", test, *(_expr(to, b) for b in branches)))
    counts = Counts(*map(max, *(pair.counts for pair in pairs))) if pairs[1:] else pairs[0].counts
    return Pair(significand, terms, None, counts, any(pair.shared for pair in pairs))


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
    return Pair(to.emit(selected(significand, 0.0)), pair.terms, shared=pair.shared)


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
        extremum = expr.fn in ("maximum", "minimum")
        lift = partial(_extremum, expr=expr) if extremum else LIFTS.get(expr.fn)
        made = lift(to, parts) if lift else None
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
    """False for a constant, and for the exp of a sub0, or of half of one: what this pass makes."""
    made: Expr | None = inner
    if isinstance(inner, Arg):
        value = to.leaves[inner.index]
        maker, made = to.builder.maker_of(value), to.builder.expr_of(value)
        if made == HALF and maker:
            made = to.builder.expr_of(maker.operands[0])
    return bool(arguments(inner)) and not (isinstance(made, Call) and made.fn == "sub0")


# functional operators -----------------------------------------------------------


def lifted_functional(
    to: Emitter, name: str, args: tuple[Pair | Value, ...], axes: tuple[Dim, ...]
) -> Pair | None:
    """The result over ``axes`` of a functional operator of Table 1; None if it needs plain values.

    Exponents of columns are worth it only if nothing else prevents overflow: when every exponential
    has exponents of its own (``to.own``).
    """
    first, second = args[0], args[-1]
    if name in ("row_sum", "row_max", "row_min") and isinstance(first, Pair):
        return _row_fold(to, name, first)
    if name in SUMS:
        return _functional_sum(to, name, first, second, axes)
    if name not in PRODUCTS:
        return None
    own = isinstance(first, Pair) and not first.shared
    of_columns = name in ("dot", "outer") or (name == "col_scale" and not own)
    if isinstance(second, Pair) and of_columns and not to.own:
        return None
    sign = -1.0 if name == "div" else 1.0
    pairs = _by_rows(to, args) if name == "dot" else _to_multiply(to, args, sign)
    if pairs is None:
        return None
    first, second = (pairs.get(at, part) for at, part in enumerate(args))
    values = (a.significand if isinstance(a, Pair) else a for a in (first, second))
    given = _terms(first), _terms(second)
    known = None
    if name not in ("dot", "outer"):
        known = _known_product(to, first, second, sign)
    made, both = to.apply(Functional(name), *values), to.joined(*given, sign)
    shared = name != "dot" and any(pair.shared for pair in pairs.values())
    return Pair(made, both, known, counted(first, second, sign), shared)


def _row_fold(to: Emitter, name: str, pair: Pair) -> Pair:
    """A reduction of rows: their elements come under one exponent, the least if it is theirs."""
    rows, fold = pair, Functional(name)
    if pair.shared or to.varies(pair, to.axes(pair.significand)[-1]):
        own = by_logarithms(to, MONOID_OF[name], to.signs(0), pair)
        if own is not None:
            least = to.apply(Functional("row_min"), own.terms[0][1])
            return extremum(MONOID_OF[name], to.apply(fold, own.significand), least)
        rows = to.by_rows(pair)
    return Pair(to.apply(fold, rows.significand), rows.terms)


SUMS = {"add": "add", "sub": "sub", "row_shift": "add", "col_shift": "add"}
PRODUCTS = ("mul", "div", "row_scale", "col_scale", "dot", "outer")


def _functional_sum(
    to: Emitter, name: str, first: Pair | Value, second: Pair | Value, axes: tuple[Dim, ...]
) -> Pair | None:
    if not isinstance(first, Pair) or not isinstance(second, Pair):
        return None
    given = to.axes(second.significand)
    left, right, terms = to.on_common_exponent(first, second)
    if to.axes(left) != axes or to.axes(right) != given:
        name, left, right = SUMS[name], to.with_axes(left, axes), to.with_axes(right, axes)
    shared = first.shared or second.shared
    return Pair(to.apply(Functional(name), left, right), terms, shared=shared)


def _by_rows(to: Emitter, args: Sequence[Pair | Value]) -> dict[int, Pair] | None:
    """The factor of a product of matrices that is a pair, under one exponent per row.

    None if both are: the terms of their sum may lie far below the product of both rows' maxima.
    """
    pairs = {at: to.by_rows(part) for at, part in enumerate(args) if isinstance(part, Pair)}
    return None if len(pairs) == 2 else pairs
