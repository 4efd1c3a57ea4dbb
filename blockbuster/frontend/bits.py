"""``& | ^ ~ << >>`` on integers, as arithmetic where it says the same.

``x & 15`` is ``x % 16`` and ``x >> 4`` is ``x // 16``, both rounded down, so one computation has
one form however it is spelled, and proofs know the laws of division. Integers share the bits that
``bitand`` finds: ``|``, ``^`` and ``~`` are sums and differences that never overflow. Only ``&``
with other numbers, and shifts by arrays, are functions of their own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from blockbuster.frontend.array import TracedArray
from blockbuster.frontend.kinds import FLOAT, MASK, SCALAR, TRUE, dtype_of_kind, result_kind
from blockbuster.frontend.operation import Operation
from blockbuster.frontend.sizes import SizeExpr
from blockbuster.frontend.source import Refused

if TYPE_CHECKING:
    from blockbuster.frontend.trace import Trace

SIGNS = {"and": "&", "or": "|", "not": "~", "xor": "^", "lshift": "<<", "rshift": ">>"}
LIMIT = 1 << 53  # expressions hold numbers as doubles, which are exact below


def of_bits(asked: Operation) -> TracedArray | None:
    """An operator on bits recorded as others; None for ``& | ~`` of masks, which are logic.

    Raises Refused for floats, for shifts of masks, and for numbers that the dtype does not hold.
    """
    trace, op, operands, _, kinds = asked
    if all(kind in (MASK, TRUE) for kind in kinds):
        if op in ("lshift", "rshift"):
            raise Refused(f"masks have no bits to shift by {SIGNS[op]}", "make integers: mask * 1")
        return trace.record("ne", operands) if op == "xor" else None
    if any(kind in (FLOAT, SCALAR) for kind in kinds):
        reason = f"{SIGNS[op]} takes masks or integers, not floats"
        raise Refused(reason, "of masks, compare first: (x > 0) & (y > 0)")
    dtype = dtype_of_kind(result_kind("bitand", kinds))
    x, *others = [_whole(trace, *pair, dtype) for pair in zip(operands, kinds, strict=True)]
    if op == "not":
        return trace.record("sub", (255 if dtype == "uint8" else -1, x))
    (y,) = others
    if op in ("lshift", "rshift"):
        return _shifted(trace, op, x, y, dtype)
    both = _both(trace, x, y, dtype)
    if op == "and":
        return both
    rest = trace.record("sub", (y, both))
    return trace.record("add", (trace.record("sub", (x, both)) if op == "xor" else x, rest))


def _whole(trace: Trace, operand: Any, kind: str, dtype: str) -> Any:
    """An operand as integers, or as an int that ``dtype`` holds. Raises Refused for others."""
    if isinstance(operand, TracedArray):
        return trace.integers(operand, dtype) if kind == MASK else operand
    if isinstance(operand, SizeExpr):
        raise Refused(
            f"the size {operand!r} has no bits to combine", "use a number, or // and % of the size"
        )
    value, held = int(operand), np.iinfo(dtype)
    if not held.min <= value <= held.max:
        raise Refused(
            f"{value} is no number of {dtype}",
            f"use one from {held.min} to {held.max}, or cast the array to a wider dtype",
        )
    if abs(value) >= LIMIT:
        raise Refused(f"{value} is too large beside an array", f"use numbers below {LIMIT}")
    return value


def _both(trace: Trace, x: Any, y: Any, dtype: str) -> TracedArray:
    """``x & y``: a rest where one of them is all ones below a power of two."""
    if not isinstance(x, TracedArray):
        x, y = y, x
    if not isinstance(y, TracedArray) and y > 0 and y & (y + 1) == 0 and y < np.iinfo(dtype).max:
        return trace.record("mod", (x, y + 1))
    return trace.record("bitand", (x, y))


def _shifted(trace: Trace, op: str, x: Any, y: Any, dtype: str) -> TracedArray:
    """``x << y`` or ``x >> y``: a product or a quotient where y is a number."""
    left, held = op == "lshift", np.iinfo(dtype)
    if isinstance(y, TracedArray):
        if not isinstance(x, TracedArray):
            x = trace.record("add", (trace.record("mul", (y, 0)), x))
        return trace.record("shl" if left else "shr", (x, y))
    if y < 0:
        raise Refused(f"a shift by {y}", "shift the other way by a number of at least 0")
    if y >= held.bits:
        if left or not held.min:
            return trace.record("mul", (x, 0))
        y = held.bits - 1  # the sign fills all bits
    if (1 << y) <= held.max and (1 << y) < LIMIT:
        return trace.record("mul" if left else "floordiv", (x, 1 << y))
    return trace.record("shl" if left else "shr", (x, y))


