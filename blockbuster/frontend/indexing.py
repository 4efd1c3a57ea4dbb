"""Indices in ``x[...]``: static slices, single positions and new axes."""

from __future__ import annotations

from typing import Any

from blockbuster.frontend.dims import DimTable
from blockbuster.frontend.kinds import MASK
from blockbuster.frontend.program import Axis
from blockbuster.frontend.sizes import SizeExpr, scalar
from blockbuster.frontend.source import Refused
from blockbuster.ir.expr import Expr
from blockbuster.ir.lengths import ONE, Length, length_of, whole

_FORMS = "x[:, None], x[..., a:b] and x[0] can be traced; see bb.custom for the rest"


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
            raise Refused(f"a {type(entry).__name__} as an index", _FORMS)
    dots = sum(entry is Ellipsis for entry in key)
    taken = sum(entry is not None and entry is not Ellipsis for entry in key)
    if dots > 1 or taken > rank:
        raise Refused("more indices than axes" if dots < 2 else "... stands twice", _FORMS)
    rest = [slice(None)] * (rank - taken)
    found = list(key) if dots else [*key, ...]
    at = next(i for i, entry in enumerate(found) if entry is Ellipsis)
    return [*found[:at], *rest, *found[at + 1 :]]


def piece(
    dims: DimTable, axis: Axis, entry: slice | SizeExpr | int
) -> tuple[Length, Length] | None:
    """The start and the length of a piece of an axis; None for all of it. Raises Refused."""
    extent = dims.length(axis)
    if isinstance(entry, SizeExpr):
        return _sized_position(dims, axis, entry)
    if not isinstance(entry, slice):
        return _position(dims, axis, int(entry))
    if entry.step not in (None, 1):
        raise Refused(
            f"a step of {entry.step!r}",
            "x[..., a:b] has no step: pass x[..., ::2] as an input of its own",
        )
    start = Length() if entry.start is None else _end(dims, axis, entry.start)
    stop = extent if entry.stop is None else _end(dims, axis, entry.stop)
    if start.constant == 0 and stop == extent:
        return None
    length = stop - start
    known = length.constant
    if known is not None and known < 1:
        raise Refused(f"the slice has {known} elements", "it needs at least one")
    over = (start + length - extent).constant
    if over is not None and over > 0:
        has = f"which has {dims.word(axis)} elements"
        raise Refused(f"the slice ends {over} behind the axis, {has}")
    return start, length


def _position(dims: DimTable, axis: Axis, at: int) -> tuple[Length, Length] | None:
    if dims.has(axis, at + 1 if at >= 0 else -at) is False:
        raise Refused(f"there is no position {at} on an axis of {dims.extent(axis)} elements")
    start = whole(at) if at >= 0 else dims.length(axis) + whole(at)
    return None if dims.length(axis) == ONE else (start, ONE)


def _sized_position(dims: DimTable, axis: Axis, at: SizeExpr) -> tuple[Length, Length]:
    start, extent = _length(dims, scalar(at)), dims.length(axis)
    behind = (extent - start).constant
    if behind is not None and behind < 1:
        raise Refused(f"there is no position {at!r} on an axis of {dims.word(axis)} elements")
    return start, ONE


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
