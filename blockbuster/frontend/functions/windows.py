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
from blockbuster.frontend.torch import is_tensor, on_tensors
from blockbuster.ir.lengths import ONE, Length, length_of, share_of, whole


def windowed(
    x: Array, axis: int, size: Any, step: int = 1, dilation: int = 1, pads: Sequence[int] = (0, 0),
    count: Any = None,
) -> Array:  # fmt: skip
    """Windows of ``size`` elements along ``axis``, each in a new last axis.

    ``x`` of (..., H, ...) becomes (..., windows, ..., size); element r of window h is element
    h * step + r * dilation of the axis with ``pads`` zeros in front of it and behind it; negative
    numbers leave elements out. A negative dilation gives the same windows in reverse: their size
    is a number then. ``count``: how many windows; as many as fit if none is given. Raises
    TraceError where they do not fit.
    """
    axis %= len(x.shape)
    before, behind = map(operator.index, pads)
    if before < 0 or behind < 0:
        x = narrowed(x, axis, max(-before, 0), max(-behind, 0))
        before, behind = max(before, 0), max(behind, 0)
    first = before if dilation > 0 else before + dilation * (size - 1)
    if not isinstance(x, TracedArray):
        room = x.shape[axis] + before + behind - abs(dilation) * (size - 1) - 1
        many = room // step + 1 if count is None else count
        params = {"axis": axis, "count": many, "length": size, "step": step, "dilation": dilation,
                  "before": first}  # fmt: skip
        return on_tensors("windows", (x,), params) if is_tensor(x) else windows(x, **params)
    dims, length = x.trace.dims, _length(x, size)
    total = dims.length(x.axes[axis]) + whole(before + behind)
    starts = total - (length - ONE) * whole(abs(dilation))
    many = ONE if count is None else _length(x, count)
    _expect(x, axis, starts - ONE - (many - ONE) * whole(step), many, length)
    if count is None:
        many = starts
        many = many if step == 1 else dims.clamped(starts * share_of(step), rounds=True)
    params = {
        "axis": axis, "count": many, "length": length, "step": step, "dilation": dilation,
        "before": first, "padded": bool(before or behind),
    }  # fmt: skip
    return x.trace.record("windows", (x,), params)


def _length(x: TracedArray, size: Any) -> Length:
    found = length_of(x.trace.scalar(size))
    if found is None or (found.constant is not None and found.constant < 1):
        raise trace_error(f"windows of {size!r} elements", hint="a window has at least one element")
    return found


def _expect(x: TracedArray, axis: int, spare: Length, count: Length, length: Length) -> None:
    """Assume that so many windows fit in the axis. Raises TraceError if they do not."""
    fits = x.trace.dims.is_not_negative(spare)
    if fits is None:
        x.trace.dims.assume(spare)
    if fits is False:
        word = x.trace.dims.word(x.axes[axis])
        many = "no window" if count == ONE else f"fewer than {count} windows"
        fit = "fits" if count == ONE else "fit"
        reason = f"{many} of {length} elements {fit} in {word} elements"
        raise trace_error(reason, hint="windows are smaller, or the axis is padded")
