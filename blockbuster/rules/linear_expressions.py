"""Scalar expressions as ``rest + slope * factor``; and with 1 or 0 in place of parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from blockbuster.ir.expr import Arg, Call, Const, Expr, call

T = TypeVar("T")
ONE, ZERO = Const(1.0), Const(0.0)
BOTH = "a product with it in both factors"


class NotAffine(Exception):
    """The reason why a value is no such sum, in words: "it" is the factor."""


@dataclass(frozen=True)
class Parts(Generic[T]):
    """``rest + slope * factor``; None is zero."""

    rest: T | None
    slope: T | None


def split(
    expr: Expr,
    operand: Callable[[Arg], Parts[Expr]],
    own: Callable[[Call], Parts[Expr] | None] = lambda _: None,
) -> Parts[Expr]:
    """The parts of an expression, from those of its operands and of functions known to ``own``.

    Raises NotAffine where the expression is not linear in the factor.
    """
    if isinstance(expr, Arg):
        return operand(expr)
    if not isinstance(expr, Call):
        return Parts(expr, None)
    known = own(expr)
    if known is not None:
        return known
    parts = [split(arg, operand, own) for arg in expr.args]
    if all(part.slope is None for part in parts):
        return Parts(Call(expr.fn, tuple(part.rest or ZERO for part in parts)), None)
    if expr.fn not in LINEAR:
        raise NotAffine(f"{expr.fn} of it")
    return LINEAR[expr.fn](expr.fn, parts)


def _sum(fn: str, parts: Sequence[Parts[Expr]]) -> Parts[Expr]:
    a, b = parts
    return Parts(_joined(fn, a.rest, b.rest), _joined(fn, a.slope, b.slope))


def _negated(_: str, parts: Sequence[Parts[Expr]]) -> Parts[Expr]:
    (a,) = parts
    return Parts(_joined("sub", None, a.rest), _joined("sub", None, a.slope))


def _joined(fn: str, a: Expr | None, b: Expr | None) -> Expr | None:
    if b is None:
        return a
    if a is None:
        return b if fn == "add" else number(call("neg", b))
    return number(Call(fn, (a, b)))


def _product(fn: str, parts: Sequence[Parts[Expr]]) -> Parts[Expr]:
    a, b = parts
    if b.slope is not None and (fn == "div" or a.slope is not None):
        raise NotAffine("a division by it" if fn == "div" else BOTH)
    at = 0 if a.slope is not None else 1
    scaled, by = parts[at], parts[1 - at].rest or ZERO

    def times(part: Expr | None) -> Expr | None:
        if part is None:
            return None
        if fn == "mul" and part == ONE:
            return by
        return number(Call(fn, (part, by) if at == 0 else (by, part)))

    return Parts(times(scaled.rest), times(scaled.slope))


def _selected(fn: str, parts: Sequence[Parts[Expr]]) -> Parts[Expr]:
    test, *branches = parts
    if test.slope is not None:
        raise NotAffine("a condition on it")
    condition = test.rest or ZERO

    def chosen(first: Expr | None, second: Expr | None) -> Expr | None:
        if first in (None, ZERO) and second in (None, ZERO):
            return None
        return Call(fn, (condition, first or ZERO, second or ZERO))

    a, b = branches
    return Parts(chosen(a.rest, b.rest), chosen(a.slope, b.slope))


LINEAR: Mapping[str, Callable[[str, Sequence[Parts[Expr]]], Parts[Expr]]] = {
    "add": _sum, "sub": _sum, "neg": _negated, "mul": _product, "div": _product,
    "where": _selected,
}  # fmt: skip

ARITHMETIC: Mapping[str, Callable[..., Any]] = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b, "neg": lambda a: -a, "square": lambda a: a * a,
    "reciprocal": lambda a: 1 / a,
}  # fmt: skip
"""Functions that are made by arithmetic alone, of numbers of any kind."""

NOTHING = (None, ZERO)
EXACT = ("add", "sub", "mul", "neg")


def number(expr: Call) -> Expr:
    """``expr``, or its value where it is one of constants, or a factor of 1."""
    if expr.fn == "mul" and expr.args[0] == ONE:
        return expr.args[1]
    values = [arg.value for arg in expr.args if isinstance(arg, Const)]
    if expr.fn not in EXACT or len(values) < len(expr.args):
        return expr
    return Const(ARITHMETIC[expr.fn](*values))


def without(fn: str, parts: tuple[Expr | None, ...], neutral: Const) -> Expr | None:
    """A function of parts, of which None are the ``neutral`` element: 1, or 0; None if it is."""
    match (fn, parts):
        case ("abs", (None,)):
            return None
        case ("mul", (None, part)) | ("mul" | "div", (part, None)) if neutral == ONE:
            return part
        case ("add", (None, part)) | ("add" | "sub", (part, None)) if neutral == ZERO:
            return part
        case ("sub", (None, part)) if neutral == ZERO and part is not None:
            return number(call("neg", part))
        case ("neg", (None,)) | ("mul" | "div", (None, _)) | ("mul", (_, None)) if neutral == ZERO:
            return None
        case ("where", (_, first, second)) if (
            neutral == ZERO and first in NOTHING and second in NOTHING
        ):
            return None
    return number(Call(fn, tuple(neutral if part is None else part for part in parts)))
