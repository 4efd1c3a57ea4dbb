"""Parts of an axis: cut out, or in another order."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from blockbuster.frontend.array import TracedArray, apply
from blockbuster.frontend.functions.row import Array
from blockbuster.frontend.functions.shapes import ravel, reshape
from blockbuster.frontend.memory import own
from blockbuster.frontend.shapes import axes_of
from blockbuster.frontend.sizes import SizeExpr, fixed
from blockbuster.frontend.source import trace_error
from blockbuster.ir.expr_lengths import length_of
from blockbuster.ir.lengths import ZERO, whole


def cut(x: Array, axis: int, start: Any, stop: Any) -> Array:
    """The elements of an axis from ``start`` up to, but not including, ``stop``."""
    first = None if isinstance(start, int) and start == 0 else start
    return x[(*(slice(None),) * axis, slice(first, stop))]


def narrowed(x: Array, axis: int, before: int, behind: int) -> Array:
    """``x`` without so many of the first and of the last elements of an axis."""
    if isinstance(x, TracedArray):
        dims, extent = x.trace.dims, x.trace.dims.length(x.axes[axis])
        if dims.is_not_negative(extent - whole(before + behind)) is False:
            what = f"pad leaves out {before} and {behind} of {dims.word(x.axes[axis])} elements"
            raise trace_error(what, hint="leave out fewer")
    return cut(x, axis, before, -behind if behind else None)


def roll(x: Array, shift: Any, axis: int | Sequence[int] | None = None) -> Array:
    """The elements shifted by ``shift`` positions; those that leave one end enter at the other."""
    if axis is None:
        return reshape(roll(ravel(x), shift, 0), x.shape)
    axes = axes_of("roll", axis, len(x.shape))
    shifts = shift if isinstance(shift, tuple | list) else [shift] * len(axes)
    made = x
    for at, by in zip(axes, shifts, strict=True):
        made = _rolled(made, by, at)
    return own(made)


def _rolled(x: Array, by: Any, axis: int) -> Array:
    by = by if isinstance(by, SizeExpr) else operator.index(by)
    extent = x.shape[axis]
    if isinstance(x, TracedArray):
        by = _at_most_once(x, by, axis)
    elif extent:
        by %= extent
    if isinstance(by, int) and by == 0:
        return x
    start = -by if isinstance(by, int) else extent - by
    return apply("concat", cut(x, axis, start, None), cut(x, axis, 0, start), axis=axis)


def _at_most_once(x: TracedArray, by: Any, axis: int) -> Any:
    """A shift that goes around an axis at most once; if its size is not known, that is assumed."""
    dims = x.trace.dims
    far = length_of(x.trace.scalar(by)) or ZERO
    is_forward = dims.is_not_negative(far) is not False
    rest = dims.length(x.axes[axis]) - (far if is_forward else ZERO - far)
    fits = dims.is_not_negative(rest)
    if fits is False:
        return fixed(by) % (fixed(x.shape[axis]) or 1)
    if fits is None:
        dims.assume(rest)
    return by if is_forward or isinstance(by, int) else by + x.shape[axis]


def torch_roll(x: Array, shifts: Any, dims: Any = None) -> Array:
    """``roll`` as torch spells it."""
    return roll(x, shifts, None if dims == () else dims)
