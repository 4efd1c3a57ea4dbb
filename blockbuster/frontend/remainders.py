"""Remainders of floats by powers of 2, which floats compute exactly.

    x % 2     x - 2 * floor(x / 2), and once more 2 where that is below 0
    x % 0.5   the same of x - trunc(x), whose quotient by 0.5 cannot be infinite

A quotient by such a number is exact but for the smallest numbers, and so are its floor and the
difference. A quotient by another number is rounded, so that its floor may be one too large.
"""

from __future__ import annotations

import math
from typing import Any

from blockbuster.frontend.array import TracedArray
from blockbuster.frontend.kinds import FLOAT
from blockbuster.frontend.operation import Operation
from blockbuster.frontend.sizes import scalar
from blockbuster.ir.expr import Const

LARGEST = 2.0**15
"""Larger numbers may be infinite in float16."""


def remainder(asked: Operation) -> TracedArray | None:
    """The remainder of floats that has the sign of the divisor; None for other operands."""
    trace, (x, divisor) = asked.trace, asked.operands
    if not isinstance(x, TracedArray) or x.kind != FLOAT or not divides_exactly(divisor):
        return None
    x = fraction_by(x, divisor)
    whole = trace.record("floor", (trace.record("div", (x, divisor)),))
    left = trace.record("sub", (x, trace.record("mul", (whole, divisor))))
    below = trace.record("lt", (left, 0.0))  # a quotient of the smallest numbers became 0
    made: TracedArray = trace.record("where", (below, trace.record("add", (left, divisor)), left))
    return made


def divides_exactly(divisor: Any) -> bool:
    """True for a number that is a power of 2, from 1 / ``LARGEST`` to ``LARGEST``."""
    number = None if isinstance(divisor, TracedArray) else scalar(divisor)
    if not isinstance(number, Const):
        return False
    return 1 / LARGEST <= number.value <= LARGEST and math.frexp(number.value)[0] == 0.5


def fraction_by(x: TracedArray, divisor: Any) -> TracedArray:
    """``x`` without its whole part if ``divisor``, a power of 2, divides that; else ``x``."""
    number = scalar(divisor)
    if not isinstance(number, Const) or number.value >= 1:
        return x
    made: TracedArray = x.trace.record("sub", (x, whole_part(x)))
    return made


def whole_part(x: TracedArray) -> TracedArray:
    """Floats without their fractions."""
    trace = x.trace
    above = trace.record("neg", (trace.record("floor", (trace.record("neg", (x,)),)),))
    below = trace.record("floor", (x,))
    made: TracedArray = trace.record("where", (trace.record("lt", (x, 0.0)), above, below))
    return made
