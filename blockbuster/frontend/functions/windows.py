"""Windows of axes: each is a view, whether windows overlap, leave gaps, or reach outside."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from blockbuster.frontend.array import TracedArray
from blockbuster.frontend.functions.cuts import narrowed
from blockbuster.frontend.functions.row import Array
from blockbuster.frontend.numerics import windows
from blockbuster.frontend.source import trace_error
from blockbuster.ir.lengths import ONE, Length, length_of, share_of, whole


def windowed(
    x: Array, axis: int, size: Any, step: int = 1, dilation: int = 1, pads: Sequence[int] = (0, 0)
) -> Array:
    """Windows of ``size`` elements along ``axis``, each in a new last axis.

    ``x`` of (..., H, ...) becomes (..., windows, ..., size); element r of window h is element
    h * step + r * dilation of the axis with ``pads`` zeros in front of it and behind it; negative
    numbers leave elements out. A negative dilation gives the same windows in reverse: their size
    is a number then. Raises TraceError where not even one window fits.
    """
    axis %= len(x.shape)
    before, behind = map(operator.index, pads)
    if before < 0 or behind < 0:
        x = narrowed(x, axis, max(-before, 0), max(-behind, 0))
        before, behind = max(before, 0), max(behind, 0)
    first = before if dilation > 0 else before + dilation * (size - 1)
    if not isinstance(x, TracedArray):
        width = abs(dilation) * (size - 1) + 1
        count = (x.shape[axis] + before + behind - width) // step + 1
        return windows(
            x, axis=axis, count=count, length=size, step=step, dilation=dilation, before=first
        )
    dims = x.trace.dims
    length = _length(x, size)
    total = dims.length(x.axes[axis]) + whole(before + behind)
    starts = total - (length - ONE) * whole(abs(dilation))
    _expect_one(x, axis, starts - ONE, length)
    count = starts if step == 1 else dims.clamped(starts * share_of(step), rounds=True)
    params = {
        "axis": axis, "count": count, "length": length, "step": step, "dilation": dilation,
        "before": first, "padded": bool(before or behind),
    }  # fmt: skip
    return x.trace.record("windows", (x,), params)


def _length(x: TracedArray, size: Any) -> Length:
    found = length_of(x.trace.scalar(size))
    if found is None or (found.constant is not None and found.constant < 1):
        raise trace_error(f"windows of {size!r} elements", hint="a window has at least one element")
    return found


def _expect_one(x: TracedArray, axis: int, spare: Length, length: Length) -> None:
    """Assume that a window fits in the axis. Raises TraceError if none does."""
    fits = x.trace.dims.is_not_negative(spare)
    if fits is None:
        x.trace.dims.assume(spare)
    if fits is False:
        word = x.trace.dims.word(x.axes[axis])
        reason = f"no window of {length} elements fits in {word} elements"
        raise trace_error(reason, hint="windows are smaller, or the axis is padded")
