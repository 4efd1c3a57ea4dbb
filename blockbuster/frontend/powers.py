"""Powers with a known exponent as roots, reciprocals and products.

They take a few instructions, and round less than a logarithm and its inverse.
"""

from __future__ import annotations

from collections.abc import Mapping

from blockbuster.ir.expr import Arg, Call, Const, call

MOST = 8
"""The largest whole exponent that is multiplied out: three products."""

NAMED = {2.0: "square", 0.5: "sqrt", -0.5: "rsqrt", -1.0: "reciprocal"}


def _by_squares(power: int) -> Call:
    """The argument to a whole power of at least 2, as products."""
    half = call("square", _by_squares(power // 2) if power > 3 else Arg(0))
    return call("mul", half, Arg(0)) if power % 2 else half


POWERS: Mapping[object, Call] = {
    **{Const(exponent): call(name, Arg(0)) for exponent, name in NAMED.items()},
    **{Const(float(power)): _by_squares(power) for power in range(3, MOST + 1)},
}
"""The expressions, by exponent."""
