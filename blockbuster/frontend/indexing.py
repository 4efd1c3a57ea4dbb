"""Indices in ``x[...]``: static slices, single positions and new axes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from blockbuster.errors import a_kind
from blockbuster.frontend.dims import DimTable
from blockbuster.frontend.kinds import MASK
from blockbuster.frontend.program import Axis, Equation
from blockbuster.frontend.sizes import SizeExpr, scalar
from blockbuster.frontend.source import Refused
from blockbuster.frontend.torch import on_host
from blockbuster.ir.expr import Expr
from blockbuster.ir.lengths import ONE, Length, length_of, whole

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


def array_among(key: tuple[Any, ...]) -> tuple[int, int] | None:
    """The place in ``key`` of an array that takes elements, and the axis that it takes them of.

    None if there is no array. Raises Refused if NumPy would put several indices together.
    """
    places = [place for place, entry in enumerate(key) if getattr(entry, "ndim", 0)]
    if not places:
        return None
    place = places[0]
    if key[place].kind == MASK if hasattr(key[place], "kind") else key[place].dtype.kind == "b":
        hint = "its size is not known: bb.where(mask, x, 0) keeps the shape"
        raise Refused("a mask as an index", hint)
    plain = all(e is None or e is Ellipsis or isinstance(e, slice) for e in _others(key, place))
    if not plain:
        raise Refused("an array beside other positions as an index", "index one after the other")
    behind = Ellipsis in key[:place]
    return place, place - len(key) if behind else place


def takes_one_a_row(
    dims: DimTable, equations: Sequence[Equation], x: Any, key: tuple[Any, ...]
) -> bool:
    """True for ``x[np.arange(n), columns]`` of ``n`` rows, ``equations`` being what was traced."""
    if len(key) != 2 or x.ndim < 2 or any(getattr(each, "ndim", 0) != 1 for each in key):
        return False
    rows, count = key[0], dims.length(x.axes[0])
    if not hasattr(rows, "axes"):
        known = count.constant
        return known is not None and np.array_equal(on_host(rows), np.arange(known))
    made = equations[rows.value.node].op if rows.value.node >= 0 else ""
    return made == "arange" and dims.length(rows.axes[0]) == count


def _others(key: tuple[Any, ...], place: int) -> tuple[Any, ...]:
    return (*key[:place], *key[place + 1 :])


def spread(key: tuple[Any, ...], rank: int) -> list[Any]:
    """One slice or position for each axis, and None for each new one; ``...`` is written out."""
    for entry in key:
        if not (
            entry is None
            or entry is Ellipsis
            or isinstance(entry, slice | SizeExpr)
            or _is_int(entry)
        ):
            raise Refused(f"{a_kind(entry)} as an index", _FORMS)
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
    extent = dims.length(axis)
    if isinstance(entry, SizeExpr):
        return _sized_position(dims, axis, entry)
    if not isinstance(entry, slice):
        return _position(dims, axis, int(entry))
    start, stop, step = _between(dims, axis, entry)
    if start.constant == 0 and stop == extent and step == 1:
        return None
    known = (stop - start).constant
    if known is not None and known < 1:
        raise Refused(f"the slice has {max(known, 0)} elements", "it needs at least one")
    over = (stop - extent).constant
    if over is not None and over > 0:
        has = f"which has {dims.word(axis)} elements"
        raise Refused(f"the slice ends {over} behind the axis, {has}")
    length = _count(dims, stop - start, abs(step))
    if step < 0:  # the first one taken is the last one of the axis
        start = stop - ONE - (length - ONE) * whole(-step)
    return Taken(start, length, 1 if length == ONE else abs(step), step < 0 and length != ONE)


def _between(dims: DimTable, axis: Axis, entry: slice) -> tuple[Length, Length, int]:
    """The elements among which a slice takes some, from the front, and its step."""
    step = 1 if entry.step is None else entry.step
    if not _is_int(step) or step == 0:
        raise Refused(f"a step of {entry.step!r}", "steps are whole numbers: x[..., ::2]")
    ends = (entry.start, entry.stop) if step > 0 else (entry.stop, entry.start)
    place = _end if step > 0 else _behind
    start = Length() if ends[0] is None else place(dims, axis, ends[0])
    stop = dims.length(axis) if ends[1] is None else place(dims, axis, ends[1])
    return start, stop, step


def _behind(dims: DimTable, axis: Axis, end: object) -> Length:
    """The place behind an element that a slice backwards begins with, or stops before."""
    place = _end(dims, axis, end)
    is_short = isinstance(end, int) and dims.has(axis, abs(end)) is False
    return place if is_short or place == dims.length(axis) else place + ONE


def _count(dims: DimTable, length: Length, step: int) -> Length:
    """How many elements there are, one a step; sizes that are not known are multiples of it."""
    if step == 1:
        return length
    constant = next((share for factors, share in length.terms if not factors), 0)
    known = int(constant) if constant == int(constant) else 0
    found = dims.divided(length - whole(known), whole(step))
    assert found is not None  # a size over a number is a length
    return found[0] + whole(-(-(known + (found[1] or 0)) // step))


def _position(dims: DimTable, axis: Axis, at: int) -> Taken | None:
    if dims.has(axis, at + 1 if at >= 0 else -at) is False:
        raise Refused(f"there is no position {at} on an axis of {dims.extent(axis)} elements")
    start = whole(at) if at >= 0 else dims.length(axis) + whole(at)
    return None if dims.length(axis) == ONE else Taken(start, ONE)


def _sized_position(dims: DimTable, axis: Axis, at: SizeExpr) -> Taken:
    start, extent = _length(dims, scalar(at)), dims.length(axis)
    behind = (extent - start).constant
    if behind is not None and behind < 1:
        raise Refused(f"there is no position {at!r} on an axis of {dims.word(axis)} elements")
    return Taken(start, ONE)


def _end(dims: DimTable, axis: Axis, end: object) -> Length:
    """Where a slice begins or ends, counted from the front."""
    length = _length(dims, scalar(end))
    number = length.constant
    if number is None:
        if all(share < 0 for _, share in length.terms):
            raise Refused(
                "a slice that begins or ends at a negative size",
                "count from the front: x[x.shape[0] - n :] for the last n rows",
            )
        return length
    if dims.has(axis, abs(number)) is False:
        return _cut_short(dims, axis, number)
    return dims.length(axis) + length if number < 0 else length


def _cut_short(dims: DimTable, axis: Axis, number: int) -> Length:
    """The end of a slice that reaches over more than its axis: as in NumPy, the axis's own.

    Not of an example's axis, for the program serves axes of other sizes, too.
    """
    extent = dims.length(axis)
    if extent.constant is None:
        raise Refused(
            f"it ends or begins {abs(number)} elements in, the axis has {dims.word(axis)}",
            "NumPy would cut it short, but one program serves arrays of many sizes",
        )
    return extent if number > 0 else Length()


def _length(dims: DimTable, expr: Expr | None) -> Length:
    found = length_of(expr) if expr is not None else None
    if found is None:
        raise Refused("a slice that begins or ends at no whole number or size", _FORMS)
    return dims.normal(found)


def _is_int(entry: object) -> bool:
    return isinstance(entry, int) and not isinstance(entry, bool)
