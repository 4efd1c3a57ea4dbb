"""Expressions of sums that do not change if all elements are shifted, such as E[x^2] - E[x]^2.

``Arg(0)`` is the sum of all elements along a dim, ``Arg(1)`` the sum of their squares. Equality is
decided in exact rational arithmetic, at fixed points: two expressions of few operations that agree
there are equal.
"""

from __future__ import annotations

import math
from fractions import Fraction

from blockbuster.ir.expr import Arg, Call, Const, Expr, Size, arguments, call
from blockbuster.ir.types import Dim
from blockbuster.rules.linear_expressions import ARITHMETIC, ZERO, without


def minus_mean(dim: Dim) -> Expr:
    """Minus the mean."""
    return call("neg", call("div", Arg(0), Size(dim)))


def around_mean(expr: Expr, dim: Dim, squares: Expr) -> Expr:
    """``expr`` with what a shift of all elements does not change expressed around their mean.

    There the sum is 0, and that of the squares is ``squares``. The rest of ``expr`` reads the sums
    that it read.
    """
    if 1 not in arguments(expr) or not isinstance(expr, Call):
        return expr
    if _shift_invariant(expr, dim):
        moved: dict[Expr, Expr | None] = {Arg(0): None, Arg(1): squares}
        return without(expr, lambda leaf: moved.get(leaf, leaf), ZERO) or ZERO
    return Call(expr.fn, tuple(around_mean(arg, dim, squares) for arg in expr.args))


_POINTS = range(3)


def _shift_invariant(expr: Expr, dim: Dim) -> bool:
    """True if ``expr`` keeps its value when each of the |dim| elements is shifted."""
    for point in _POINTS:
        n, shift = Fraction(1009 + 2 * point), Fraction(31 + 17 * point, 7)
        total, squares = _number(0, point), _number(1, point)
        moved = {0: total + n * shift, 1: squares + 2 * shift * total + n * shift * shift}
        value = _evaluated(expr, point, dim, {})
        if value is None or value != _evaluated(expr, point, dim, moved):
            return False
    return True


def equal(left: Expr, right: Expr, dim: Dim) -> bool:
    """True if both are made by arithmetic alone and have the same value."""
    values = [(_evaluated(left, p, dim, {}), _evaluated(right, p, dim, {})) for p in _POINTS]
    return all(a is not None and a == b for a, b in values)


def _number(index: int, point: int) -> Fraction:
    return Fraction(7919 * (index + 2) + 104729 * point, 1013 + point)


def _evaluated(expr: Expr, point: int, dim: Dim, moved: dict[int, Fraction]) -> Fraction | None:
    """The exact value of ``expr``; None if it is not made by arithmetic alone."""
    match expr:
        case Arg(index):
            return moved.get(index, _number(index, point))
        case Const(value):
            return Fraction(value) if math.isfinite(value) else None
        case Size(other):
            return Fraction(1009 + 2 * point if other == dim else 1013)
        case Call(fn, args) if fn in ARITHMETIC:
            values = [_evaluated(arg, point, dim, moved) for arg in args]
            if None in values or (fn in ("div", "reciprocal") and values[-1] == 0):
                return None
            return Fraction(ARITHMETIC[fn](*values))
    return None
