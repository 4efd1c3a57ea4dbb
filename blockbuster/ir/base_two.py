"""Exponentials in base 2, and factors that are known to be positive.

exp(x) is 2 ** (x log2 e). The exact semantics treat the constant ``LOG2_E`` as log2 e itself, and
keep infinities in products with positive factors.
"""

from __future__ import annotations

import math
from functools import lru_cache

from blockbuster.ir.expr import DEEPEST, Call, Const, Expr, Size, call, functions_of

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


def tanh_by(exponent: Expr) -> Call:
    """tanh(x) for the ``exponent`` 2 x log2 e."""
    return call("sub", 1.0, call("div", 2.0, call("add", 1.0, exp2(exponent))))


@lru_cache(maxsize=1024)
def with_tanh(expr: Expr) -> Expr:
    """``expr`` with tanh written for what ``tanh_by`` makes."""
    if not isinstance(expr, Call) or expr.depth > DEEPEST or "pow" not in functions_of(expr):
        return expr
    match expr.args:
        case (_, Call("div", (_, Call("add", (_, Call("pow", (_, exponent))))))):
            if expr == tanh_by(exponent):
                scaled = call("div", with_tanh(exponent), call("mul", 2.0, LOG2_E))
                return call("tanh", scaled)
    return Call(expr.fn, tuple(map(with_tanh, expr.args)))


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
