"""Windows of axes: each is a view, whether windows overlap, leave gaps, or reach outside."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from blockbuster.errors import TraceError
from blockbuster.frontend.array import TracedArray
from blockbuster.frontend.functions.cuts import narrowed
from blockbuster.frontend.functions.row import Array
from blockbuster.frontend.memory import shown
from blockbuster.frontend.numerics import windows
from blockbuster.frontend.sizes import SizeExpr
from blockbuster.frontend.source import trace_error
from blockbuster.frontend.torch import is_tensor, on_tensors
from blockbuster.ir.expr_lengths import length_of
from blockbuster.ir.lengths import ONE, Length, share_of, whole


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
        if size < 1:
            raise _too_few(f"windows of {size!r} elements")
        if count is not None and count < 1:
            raise _too_few(f"{count!r} windows")
        many = max(room // step + 1, 1) if count is None else count
        if room < (many - 1) * step:
            raise _do_not_fit(many, size, x.shape[axis])
        params = {"axis": axis, "count": many, "length": size, "step": step, "dilation": dilation,
                  "before": first}  # fmt: skip
        return on_tensors("windows", (x,), params) if is_tensor(x) else windows(x, **params)
    dims, length = x.trace.dims, _length(x, size, f"windows of {size!r} elements")
    total = dims.length(x.axes[axis]) + whole(before + behind)
    starts = total - (length - ONE) * whole(abs(dilation))
    many = ONE if count is None else _length(x, count, f"{count!r} windows")
    _expect(x, axis, starts - ONE - (many - ONE) * whole(step), many, length)
    if count is None:
        many = starts
        many = many if step == 1 else dims.clamped(starts * share_of(step), rounds=True)
    params = {
        "axis": axis, "count": many, "length": length, "step": step, "dilation": dilation,
        "before": first, "padded": bool(before or behind),
    }  # fmt: skip
    return x.trace.record("windows", (x,), params)


def viewed(x: Array, axis: int, size: Any, step: int = 1) -> Array:
    """The same windows as a view of ``x``: they show what it holds when they are read."""
    made = windowed(x, axis, size, step)
    if not isinstance(made, TracedArray):
        return made
    return shown(made, x, lambda base: windowed(base, axis, size, step), _unchanged)


def _unchanged(_: TracedArray, __: TracedArray) -> TracedArray:
    reason = "this changes windows of an array in place: they share elements"
    raise trace_error(reason, hint="copy them: y = y.copy(), or y.clone() of a tensor")


def agree(one: Any, other: Any) -> bool:
    """Whether two sizes are one; of sizes that are not known, that is assumed."""
    trace = next((size.trace for size in (one, other) if isinstance(size, SizeExpr)), None)
    if trace is None:
        return bool(one == other)
    first, second = (length_of(trace.scalar(size)) for size in (one, other))
    if first is None or second is None:
        return False
    for spare in (first - second, second - first):
        fits = trace.dims.is_not_negative(spare)
        if fits is False:
            return False
        if fits is None:
            trace.dims.assume(spare)
    return True


def _length(x: TracedArray, size: Any, what: str) -> Length:
    found = length_of(x.trace.scalar(size))
    if found is None or (found.constant is not None and found.constant < 1):
        raise _too_few(what)
    return found


def _expect(x: TracedArray, axis: int, spare: Length, count: Length, length: Length) -> None:
    """Assume that so many windows fit in the axis. Raises TraceError if they do not."""
    fits = x.trace.dims.is_not_negative(spare)
    if fits is None:
        x.trace.dims.assume(spare)
    if fits is False:
        raise _do_not_fit(count, length, x.trace.dims.word(x.axes[axis]))


def _too_few(what: str) -> TraceError:
    return trace_error(what, hint="there is at least one window, of at least one element")


def _do_not_fit(count: Any, size: Any, extent: Any) -> TraceError:
    one = str(count) == "1"
    many, fit = ("no window", "fits") if one else (f"fewer than {count} windows", "fit")
    reason = f"{many} of {size} elements {fit} in {extent} elements"
    return trace_error(reason, hint="windows are smaller, or the axis is padded")
