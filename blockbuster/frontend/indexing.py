"""Indices in ``x[...]`` that are views: slices, single positions and new axes.

A slice takes what Python's takes, whatever the size of the axis: an end that lies outside of the
axis is cut short, and a slice that begins behind its end takes nothing. Of sizes that are not known
the number of elements is a clamp (``size_table.py``).
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any

from blockbuster.errors import a_kind
from blockbuster.frontend.dims import DimTable
from blockbuster.frontend.program import Axis
from blockbuster.frontend.sizes import SizeExpr, scalar
from blockbuster.frontend.source import OffAxis, Refused
from blockbuster.ir.expr_lengths import length_of
from blockbuster.ir.lengths import ONE, ZERO, Length, share_of, whole

_FORMS = "x[:, None], x[..., a:b:2] and x[0] can be traced; see bb.custom for the rest"


@dataclass(frozen=True)
class Taken:
    """``length`` elements of an axis, each ``step`` behind the last one, in order or backwards."""

    start: Length
    length: Length
    step: int = 1
    backwards: bool = False

    @property
    def operator(self) -> str:
        """The operator that takes them, in order."""
        return "slice" if self.step == 1 else "strided"

    @property
    def params(self) -> dict[str, Length | int]:
        """The operator's parameters beside the axis."""
        ends: dict[str, Length | int] = {"start": self.start, "length": self.length}
        return ends if self.step == 1 else {**ends, "step": self.step}


def whole_number(entry: object) -> int | None:
    """A whole number of Python's, NumPy's or torch's; None for all else, truth values too."""
    is_truth = isinstance(entry, bool) or str(getattr(entry, "dtype", "")).endswith("bool")
    is_array = bool(getattr(entry, "ndim", 0)) or hasattr(entry, "axes")
    if is_truth or is_array or isinstance(entry, SizeExpr):
        return None
    try:
        return operator.index(entry)  # type: ignore[arg-type]
    except TypeError:
        return None


def spread(key: tuple[Any, ...], rank: int) -> list[Any]:
    """One slice or position for each axis, and None for each new one; ``...`` is written out."""
    for entry in key:
        if not (entry is None or entry is Ellipsis or isinstance(entry, slice | SizeExpr | int)):
            raise Refused(f"{a_kind(entry)} as an index", _FORMS)
        if isinstance(entry, bool):
            raise Refused(f"{entry} as an index", "None makes a new axis: x[None]")
    dots = sum(entry is Ellipsis for entry in key)
    taken = sum(entry is not None and entry is not Ellipsis for entry in key)
    if dots > 1 or taken > rank:
        raise Refused("more indices than axes" if dots < 2 else "... stands twice", _FORMS)
    rest = [slice(None)] * (rank - taken)
    found = list(key) if dots else [*key, ...]
    at = next(i for i, entry in enumerate(found) if entry is Ellipsis)
    return [*found[:at], *rest, *found[at + 1 :]]


def piece(dims: DimTable, axis: Axis, entry: slice | SizeExpr | int) -> Taken | None:
    """The elements of an axis that are taken; None for all of it. Raises Refused."""
    if isinstance(entry, SizeExpr):
        return _sized_position(dims, axis, entry)
    if not isinstance(entry, slice):
        return _position(dims, axis, entry)
    first, behind, step = _between(dims, axis, entry)
    if step == 1 and not first.terms and behind == dims.length(axis):
        return None
    length = _inside(dims, behind - first)
    length = length if abs(step) == 1 else dims.clamped(length * share_of(abs(step)), rounds=True)
    if not length.terms:
        return Taken(length, length)
    if step < -1:  # the first one taken is the last one of the axis
        first = behind - ONE - (length - ONE) * whole(-step)
    return Taken(first, length, 1 if length == ONE else abs(step), step < 0 and length != ONE)


def _between(dims: DimTable, axis: Axis, entry: slice) -> tuple[Length, Length, int]:
    """The place of the first element among those of which a slice takes some, the place behind the
    last one, and the step.

    The first place may lie behind the axis, and behind the last one: then nothing is taken.
    """
    step = 1 if entry.step is None else whole_number(entry.step)
    if not step:
        raise Refused(f"a step of {entry.step!r}", "steps are whole numbers: x[..., ::2]")
    extent = dims.length(axis)
    begin, end = (entry.start, entry.stop) if step > 0 else (entry.stop, entry.start)
    # x[a:b:-1] goes from element a down to the one behind element b
    more = ZERO if step > 0 else ONE
    first, behind = ZERO, extent
    if begin is not None:
        first = _inside(dims, _place(dims, axis, begin) + more)
    if end is not None:
        behind = extent - _inside(dims, extent - _place(dims, axis, end) - more)
        behind = _inside(dims, behind) if step < -1 else behind  # elements are counted from there
    return first, behind, step


def _inside(dims: DimTable, length: Length) -> Length:
    """``length``, or 0 where it is negative."""
    return length if dims.is_not_negative(length) else dims.clamped(length)


def _place(dims: DimTable, axis: Axis, end: object) -> Length:
    """Where a slice begins or ends, counted from the front; it may lie outside of the axis."""
    number = whole_number(end)
    if number is not None:
        half = dims.half(axis, abs(number))
        if half is not None:
            return half
        return whole(number) if number >= 0 else dims.length(axis) + whole(number)
    return _sized_place(dims, axis, end)


def _sized_place(dims: DimTable, axis: Axis, end: object) -> Length:
    """The same for a size, which is taken for one side of 0 if that is not known."""
    place = _length(dims, end)
    is_in_front = dims.is_not_negative(place)
    if is_in_front is None:
        is_in_front = not (ZERO - place).never_negative
        dims.assume(place if is_in_front else ZERO - place - ONE)
    return place if is_in_front else dims.length(axis) + place


def _position(dims: DimTable, axis: Axis, at: int) -> Taken | None:
    if not is_on_axis(dims, axis, at):
        dims.assume(dims.length(axis) - whole(at + 1 if at >= 0 else -at), "")
    start = whole(at) if at >= 0 else dims.length(axis) + whole(at)
    return None if dims.length(axis) == ONE else Taken(start, ONE)


def is_on_axis(dims: DimTable, axis: Axis, at: int, *, from_end: bool = True) -> bool:
    """True if an axis has the position ``at``, False if that is not known.

    ``from_end``: negative positions count from the end. Raises OffAxis if it has none.
    """
    there = dims.has(axis, at + 1 if at >= 0 else -at) if from_end or at >= 0 else False
    if there is False:
        raise OffAxis(f"there is no position {at} on an axis of {dims.word(axis)} elements")
    return bool(there)


def _sized_position(dims: DimTable, axis: Axis, at: SizeExpr) -> Taken:
    start = _sized_place(dims, axis, at)
    for length in (start, dims.length(axis) - start - ONE):
        there = dims.is_not_negative(length)
        if there is False:
            raise OffAxis(f"there is no position {at!r} on an axis of {dims.word(axis)} elements")
        if there is None:
            dims.assume(length, "")
    return Taken(start, ONE)


def _length(dims: DimTable, size: object) -> Length:
    expr = scalar(size) if isinstance(size, SizeExpr) else None
    found = length_of(expr) if expr is not None else None
    if found is None:
        raise Refused("a slice that begins or ends at no whole number or size", _FORMS)
    return dims.normal(found)
