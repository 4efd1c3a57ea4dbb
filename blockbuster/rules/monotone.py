"""Functions that rise, or fall, with their elements: F(u(c), r) for what is shared, r.

The largest F(u) is F of the largest u if F rises, and F of the smallest u if it falls.
"""

from __future__ import annotations

from typing import NamedTuple

from blockbuster.ir.expr import Arg, Call, Const, Expr, arguments, rewrite
from blockbuster.rules.separate import NEGATIVE, POSITIVE, Signs, signs_of

RISING = ("exp", "log", "log1p", "expm1", "tanh", "sigmoid", "erf", "atan", "relu", "sqrt")
"""Functions of one number that never fall where they are defined."""

HOLE = -1
"""The argument of F that stands for u."""


class Monotone(NamedTuple):
    """``inner`` is u, free of what is shared; ``outer`` is F, which rises or falls with HOLE."""

    inner: Expr
    outer: Expr
    rises: bool


class NotMonotoneError(ValueError):
    """Why a function is no such F(u), as the rest of a sentence about it."""


def monotone(expr: Expr, late: frozenset[int], shared: frozenset[int], signs: Signs) -> Monotone:
    """``expr`` as F(u), where u is free of ``late`` arguments. Raises NotMonotoneError.

    Those, and perhaps others, are ``shared``: the same in all iterations.
    """
    outer: Expr = Arg(HOLE)
    rises, inner = True, expr
    while not late.isdisjoint(arguments(inner)):
        if not isinstance(inner, Call):
            raise NotMonotoneError("is the same in all iterations")
        varying = [at for at, arg in enumerate(inner.args) if not {*arguments(arg)} <= shared]
        if len(varying) != 1:
            raise NotMonotoneError(f"takes {inner.fn} of several values that change")
        (at,) = varying
        direction = _direction(inner, at, signs)
        if direction is None:
            raise NotMonotoneError(f"is not known to rise or to fall: it takes {inner.fn}")
        rises = rises == direction
        layer = Call(inner.fn, tuple(Arg(HOLE) if i == at else a for i, a in enumerate(inner.args)))
        outer = _filled(outer, layer)
        inner = inner.args[at]
    return Monotone(inner, outer, rises)


def _direction(expr: Call, at: int, signs: Signs) -> bool | None:
    """True if ``expr`` rises with its argument ``at``, False if it falls, None if neither."""
    own, others = signs_of(expr.args[at], signs), [*expr.args[:at], *expr.args[at + 1 :]]
    match expr.fn:
        case fn if fn in RISING or fn in ("add", "maximum", "minimum"):
            return True
        case "sub":
            return at == 0
        case "neg":
            return False
        case "mul":
            return _by_factor(signs_of(others[0], signs))
        case "div" if at == 0:
            return _by_factor(signs_of(others[0], signs))
        case "reciprocal" | "rsqrt" if own in (POSITIVE, NEGATIVE):
            return False
        case "abs" | "square":
            return _by_factor(own)
        case "pow" if isinstance(others[0], Const) and at == 0 and NEGATIVE not in own:
            return True if others[0].value > 0 else None
    return None


def _by_factor(signs: str) -> bool | None:
    """How a product moves with a factor where the other has such signs."""
    if NEGATIVE not in signs:
        return True
    return False if POSITIVE not in signs else None


def _filled(outer: Expr, layer: Expr) -> Expr:
    """``outer`` of what ``layer`` makes of u."""
    return rewrite(outer, lambda leaf: layer if leaf == Arg(HOLE) else leaf)
