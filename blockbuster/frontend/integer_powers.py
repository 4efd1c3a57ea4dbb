"""Powers of integers and masks, multiplied out: they stay integers, and are exact.

Integers wrap in a product as they do in a power. NumPy and torch raise where an exponent is
negative; an exponent that is an array is known only when the program runs, so it is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from blockbuster.frontend.array import TracedArray
from blockbuster.frontend.kinds import MASK, POSITION, TRUE, WHOLE, WHOLES
from blockbuster.frontend.memory import own
from blockbuster.frontend.operation import Operation
from blockbuster.frontend.source import Refused

if TYPE_CHECKING:
    from blockbuster.frontend.trace import Trace

MOST = 64
"""The largest exponent that is multiplied out: from 3 ** 41 on, int64 wraps."""


def integer_power(asked: Operation) -> TracedArray | None:
    """A power of integers as products; None if floats are involved.

    Raises Refused for negative exponents, for those above ``MOST``, and for arrays of exponents.
    """
    trace, (base, exponent), kinds = asked.trace, asked.operands, asked.kinds
    if any(kind not in (MASK, TRUE, WHOLE, *WHOLES) for kind in kinds):
        return None
    if all(kind in (MASK, TRUE) for kind in kinds):
        is_array = isinstance(exponent, TracedArray)
        without = trace.record("not", (exponent,)) if is_array else not exponent
        truths: TracedArray = trace.record("or", (base, without))
        return truths if trace.of_tensors else trace.integers(truths, "int8")
    if kinds[1] == MASK:
        return trace.record("where", (exponent, base, 1))
    if isinstance(exponent, TracedArray):
        raise Refused(
            "integers are raised to numbers only: an array of exponents may hold negative ones",
            "make the base floats: x.astype(np.float64) ** y, 2.0 ** y",
        )
    power = int(exponent)
    if not 0 <= power <= MOST:
        raise Refused(
            f"integers to the power of {power} are no integers", "make them floats: 1.0 * x"
        )
    return _multiplied(trace, own(_numbers(trace, base, power)), power)


def _numbers(trace: Trace, base: TracedArray, power: int) -> TracedArray:
    """The base; NumPy makes squares of arrays of masks int8, and other powers int64."""
    if base.kind != MASK:
        return base
    narrow = power == 2 and base.ndim > 0 and not trace.of_tensors
    return trace.integers(base, "int8" if narrow else POSITION)


def _multiplied(trace: Trace, base: TracedArray, power: int) -> TracedArray:
    """``base`` to a power, by squares."""
    if power == 0:
        zero: TracedArray = trace.record("mul", (base, 0))
        return trace.record("add", (zero, 1))
    made, square = None, base
    while power:
        if power % 2:
            made = square if made is None else trace.record("mul", (made, square))
        power //= 2
        square = trace.record("mul", (square, square)) if power else square
    assert made is not None
    return made if made is not base else own(base)
