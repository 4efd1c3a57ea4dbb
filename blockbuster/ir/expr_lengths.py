"""Scalar expressions as lengths: the reverse of ``Length.expr``."""

from __future__ import annotations

from blockbuster.ir.expr import Call, Const, Expr, Size, call
from blockbuster.ir.lengths import ONE, Length, clamped, inverse, size, whole


def length_of(expr: Expr) -> Length | None:
    """``expr`` as a length; None if it is none. Divisions have to come out even.

    >>> str(length_of(call("sub", Size("D"), call("div", Size("D"), 2))))
    '|D| / 2'
    """
    match expr:
        case Size(dim):
            return size(dim)
        case Const(value):
            return whole(int(value)) if value.is_integer() else None
        case Call("neg", (arg,)):
            return length_of(call("mul", arg, -1))
        case Call("maximum", (Call("floor", (Call("div", (left, right)),)), Const(0.0))):
            return _rounded_up(length_of(left), length_of(right))
        case Call("maximum", (arg, Const(0.0))):
            top = length_of(arg)
            return clamped(top) if top is not None else None
        case Call("floor", (Call("div", (left, right)),)):
            number = length_of(Call("div", (left, right)))
            is_counted = number is not None and number.never_negative
            return _rounded_up(length_of(left), length_of(right)) if is_counted else None
        case Call("div", (left, right)):
            top, under = length_of(left), length_of(right)
            return top * inverse(under) if top is not None and under and under.terms else None
        case Call("add" | "sub" | "mul" as fn, (left, right)):
            a, b = length_of(left), length_of(right)
            if a is not None and b is not None:
                return a + b if fn == "add" else a - b if fn == "sub" else a * b
    return None


def _rounded_up(top: Length | None, under: Length | None) -> Length | None:
    """The clamp that is written as a quotient of ``top``, which is larger by the divisor less 1."""
    if top is None or under is None or not (top.is_integral and under.is_integral):
        return None
    if not under.never_negative or not under.terms:
        return None
    return clamped((top - under + ONE) * inverse(under), rounds=True)
