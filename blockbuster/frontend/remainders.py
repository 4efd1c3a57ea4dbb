"""Remainders of floats by whole powers of 2, which floats compute exactly.

    x % 2     x - 2 * floor(x / 2), and once more 2 where that is below 0

A quotient by such a number is exact but for the smallest numbers, and so are its floor and the
difference. A quotient by another number is rounded, so that its floor may be one too large, and one
by a power of 2 below 1 may be infinite.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from blockbuster.frontend.array import TracedArray
from blockbuster.frontend.kinds import FLOAT
from blockbuster.frontend.sizes import scalar
from blockbuster.ir.expr import Const

if TYPE_CHECKING:
    from blockbuster.frontend.trace import Trace

LARGEST = 2.0**15
"""Larger numbers may be infinite in float16."""


def remainder(trace: Trace, operands: Sequence[Any]) -> TracedArray | None:
    """The remainder of floats that has the sign of the divisor; None for other operands."""
    x, divisor = operands
    if not isinstance(x, TracedArray) or x.kind != FLOAT or not divides_exactly(divisor):
        return None
    whole = trace.record("floor", (trace.record("div", (x, divisor)),))
    left = trace.record("sub", (x, trace.record("mul", (whole, divisor))))
    below = trace.record("lt", (left, 0.0))  # a quotient of the smallest numbers became 0
    made: TracedArray = trace.record("where", (below, trace.record("add", (left, divisor)), left))
    return made


def divides_exactly(divisor: Any) -> bool:
    """True for a number that is a power of 2, from 1 to ``LARGEST``."""
    number = None if isinstance(divisor, TracedArray) else scalar(divisor)
    if not isinstance(number, Const):
        return False
    return 1 <= number.value <= LARGEST and math.frexp(number.value)[0] == 0.5
