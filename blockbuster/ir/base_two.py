"""Exponentials in base 2, and factors that are known to be positive.

exp(x) is 2 ** (x log2 e). The exact semantics take the constant ``LOG2_E`` for log2 e itself, and
keep infinities in products with positive factors.
"""

from __future__ import annotations

import math

from blockbuster.ir.expr import Call, Const, Expr, Size, call

LOG2_E = math.log2(math.e)
LARGEST = 3.4028234663852886e38
"""The largest finite number of float32."""

_POSITIVE = ("mul", "div", "pow", "sqrt", "rsqrt", "reciprocal")
"""Functions that are positive where all their arguments are."""


def exp2(x: Expr) -> Call:
    """2 ** x."""
    return call("pow", 2.0, x)


def finite(x: Expr) -> Call:
    """``x``, and the largest finite number of its sign where it is infinite."""
    below = call("where", call("eq", x, math.inf), LARGEST, x)
    return call("where", call("eq", x, -math.inf), -LARGEST, below)


def made_finite(expr: Expr) -> Expr | None:
    """x where ``expr`` is ``finite(x)``, else None."""
    match expr:
        case Call("where", (_, _, Call("where", (_, _, x)))) if expr == finite(x):
            return x
    return None


def is_positive(expr: Expr) -> bool:
    """True for a positive finite number that reads no element.

    >>> is_positive(call("pow", Size("D"), -0.5)), is_positive(Const(-1.0))
    (True, False)
    """
    match expr:
        case Const(value):
            return 0.0 < value < math.inf
        case Size():
            return True
        case Call("pow", (base, Const(exponent))):
            return is_positive(base) and math.isfinite(exponent)
        case Call(fn, args):
            return fn in _POSITIVE and all(map(is_positive, args))
    return False
