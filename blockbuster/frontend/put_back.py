"""Views: how each is read from the array that it shows, and how its elements are put back there."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from blockbuster.frontend.kinds import MASK
from blockbuster.frontend.memory import perhaps, shown
from blockbuster.frontend.regrouping import parts_of
from blockbuster.frontend.sizes import SizeExpr
from blockbuster.ir.extents import Lengths
from blockbuster.ir.lengths import ONE, Length, whole

if TYPE_CHECKING:
    from blockbuster.frontend.array import TracedArray

Params = Mapping[str, Any]


def as_view(made: TracedArray, base: TracedArray, op: str, params: Params) -> TracedArray:
    """``made``, the result of an operation that moves elements, as a view of ``base``."""
    if op == "reshape" and _merges_axes(base, made):
        why = "a reshape that merges axes is a view of some layouts and a copy of others"
        copy_or_view: TracedArray = perhaps(made, base, why)
        return copy_or_view

    def read(array: TracedArray) -> TracedArray:
        return array.trace.record(op, (array,), params)

    def back(array: TracedArray, new: TracedArray) -> TracedArray:
        return PUT_BACK[op](array, new, params)

    view: TracedArray = shown(made, base, read, back)
    return view


def _merges_axes(base: TracedArray, made: TracedArray) -> bool:
    """True if a reshape makes one axis of several, or if that cannot be told."""
    length = base.trace.dims.length
    parts = parts_of([*map(length, base.axes)], [*map(length, made.axes)])
    return parts is None or len({part.new for part in parts}) < len(parts)


def _transposed(_: TracedArray, new: TracedArray, params: Params) -> TracedArray:
    order = params["axes"]
    axes = tuple(order.index(axis) for axis in range(len(order)))
    return new.trace.record("transpose", (new,), {"axes": axes})


def _expanded(base: TracedArray, new: TracedArray, params: Params) -> TracedArray:
    shown = params["axes"]
    axes = tuple(shown.index(at) if at in shown else None for at in range(base.ndim))
    return new.trace.record("expand", (new,), {"axes": axes})


def _reshaped(base: TracedArray, new: TracedArray, params: Params) -> TracedArray:  # noqa: ARG001
    extents = tuple(base.trace.dims.length(axis) for axis in base.axes)
    return new.trace.record("reshape", (new,), {"shape": Lengths(extents)})


def _slice(base: TracedArray, new: TracedArray, params: Params) -> TracedArray:
    """What is in front of the slice, the slice, and what is behind it."""
    trace, axis, start = base.trace, params["axis"], params["start"]
    end = start + params["length"]
    rest = trace.dims.length(base.axes[axis]) - end
    parts = [new]
    for place, first, count in ((0, Length(), start), (2, end, rest)):
        if trace.dims.normal(count).constant != 0:
            kept = {"axis": axis, "start": first, "length": count}
            parts.insert(place, trace.record("slice", (base,), kept))
    return trace.record("concat", parts, {"axis": axis})


def _strided(base: TracedArray, new: TracedArray, params: Params) -> TracedArray:
    """The axis, with the elements of the slice at the positions that the slice takes.

    If it takes one of every ``step`` elements of the axis, or of a slice of it, that is a column of
    the axis reshaped to (..., step). If its last row is not whole, it is cut; that takes sizes that
    are numbers. Else positions are computed.
    """
    trace, axis, start, step = base.trace, params["axis"], params["start"], params["step"]
    length, extent = params["length"], trace.dims.length(base.axes[axis])
    span, before = length * whole(step), (slice(None),) * axis
    at, over = (trace.dims.normal(size).constant for size in (start, span - extent))
    if at is not None and at < step and over == 0:
        return _column(base, new, axis, int(at), step)
    if trace.dims.is_not_negative(extent - start - span):
        kept = {"axis": axis, "start": start, "length": span}
        inner = _column(trace.record("slice", (base,), kept), new, axis, 0, step)
        return _slice(base, inner, kept)
    if at is not None and over is not None:
        pads = [(0, 0)] * base.ndim
        pads[axis] = (0, int(at + over))
        longer = trace.spellings.numpy[np.pad].function(base, pads)
        made: TracedArray = _strided(longer, new, params)[(*before, slice(0, int(-at - over)))]
        return made
    return _strided_by_positions(base, new, params)


def _column(base: TracedArray, new: TracedArray, axis: int, at: int, step: int) -> TracedArray:
    """``new`` in place of the column ``at`` of an axis that is rows of ``step`` elements."""
    trace, before = base.trace, (slice(None),) * (axis + 1)
    rows = base.reshape((*new.shape[: axis + 1], step, *new.shape[axis + 1 :]))
    hit = trace.record("arange", (), {"size": whole(step).expr}) == at
    hit = hit[(slice(None), *(None,) * (base.ndim - 1 - axis))]
    made = trace.record("where", (hit, new[(*before, None)], rows))
    kept: TracedArray = made.reshape(base.shape)
    return kept


def _strided_by_positions(base: TracedArray, new: TracedArray, params: Params) -> TracedArray:
    """The same for sizes that are not known: a gather of the axis and what is new behind it."""
    trace, axis, start, step = base.trace, params["axis"], params["start"], params["step"]
    at = places(base, axis)
    hit = _taken(base, at, axis, start, params["length"], step)
    ours = trace.record("where", (hit, _behind(at, start), 0)) // step
    behind = ours + _number(base, trace.dims.length(base.axes[axis]))  # its length may be rounded
    which = trace.record("where", (hit, behind, at))
    both = trace.record("concat", (base, new), {"axis": axis})
    take = trace.spellings.numpy[np.take].function
    made: TracedArray = (
        take(both + 0, which, axis) != 0 if new.kind == MASK else take(both, which, axis)
    )
    return made


def hits(
    x: TracedArray, axis: int, start: Length, length: Length, step: int = 1
) -> TracedArray:
    """The mask of the elements of ``x`` that a slice of an axis takes."""
    return _along(_taken(x, places(x, axis), axis, start, length, step), x, axis)


def _taken(
    x: TracedArray, at: TracedArray, axis: int, start: Length, length: Length, step: int
) -> TracedArray:
    """Which of the positions ``at`` along an axis of ``x`` a slice takes."""
    if length == ONE:
        return x.trace.record("eq", (at, _number(x, start)))
    end = start + length * whole(step)
    past = (end - x.trace.dims.length(x.axes[axis])).constant
    tests = [at < _number(x, end)] if past is None or past < 0 else []
    tests += [_behind(at, start) % step == 0] if step > 1 else []
    if start.constant != 0 or not tests:
        tests.insert(0, at >= _number(x, start))
    hit: TracedArray = functools.reduce(operator.and_, tests)
    return hit


def places(x: TracedArray, axis: int) -> TracedArray:
    """The positions along an axis of ``x``."""
    extent = x.trace.dims.length(x.axes[axis])
    return x.trace.record("arange", (), {"size": extent.expr})


def _behind(at: TracedArray, start: Length) -> TracedArray:
    return at if start.constant == 0 else at - _number(at, start)


def _along(mask: TracedArray, x: TracedArray, axis: int) -> TracedArray:
    """A mask of one axis as that axis of ``x``."""
    return mask[(slice(None), *(None,) * (x.ndim - 1 - axis))]


def _number(x: TracedArray, length: Length) -> Any:
    number = x.trace.dims.normal(length).constant
    return SizeExpr(length.expr, x.trace) if number is None else number


PUT_BACK: Mapping[str, Callable[[TracedArray, TracedArray, Params], TracedArray]] = {
    "transpose": _transposed, "expand": _expanded, "reshape": _reshaped,
    "slice": _slice, "strided": _strided,
}  # fmt: skip
"""The operations whose results are views in NumPy and in torch."""
