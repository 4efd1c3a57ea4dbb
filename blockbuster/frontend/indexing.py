"""What stands in ``x[...]``: static slices, single positions and new axes."""

from __future__ import annotations

from typing import Any

from blockbuster.frontend.dims import DimTable
from blockbuster.frontend.program import Axis
from blockbuster.frontend.sizes import bound
from blockbuster.frontend.source import Refused
from blockbuster.ir.expr import Expr
from blockbuster.ir.lengths import ONE, Length, length_of, whole

_FORMS = "x[:, None], x[..., a:b] and x[0] can be traced; see bb.custom for the rest"


def spread(key: tuple[Any, ...], rank: int) -> list[Any]:
    """One slice or position for each axis, and None for each new one; ``...`` is written out."""
    for entry in key:
        if not (entry is None or entry is Ellipsis or isinstance(entry, slice) or _is_int(entry)):
            raise Refused(f"a {type(entry).__name__} as an index", _FORMS)
    dots = sum(entry is Ellipsis for entry in key)
    taken = sum(entry is not None and entry is not Ellipsis for entry in key)
    if dots > 1 or taken > rank:
        raise Refused("more indices than axes" if dots < 2 else "... stands twice", _FORMS)
    rest = [slice(None)] * (rank - taken)
    found = list(key) if dots else [*key, ...]
    at = next(i for i, entry in enumerate(found) if entry is Ellipsis)
    return [*found[:at], *rest, *found[at + 1 :]]


def piece(dims: DimTable, axis: Axis, entry: slice | int) -> tuple[Length, Length] | None:
    """The start and the length of a piece of an axis; None for all of it. Raises Refused."""
    extent = dims.length(axis)
    if not isinstance(entry, slice):
        start = _end(dims, axis, int(entry))
        return None if extent == ONE and start.constant == 0 else _inside(start, ONE, extent)
    if entry.step not in (None, 1):
        raise Refused(
            f"a step of {entry.step!r}",
            "slice without a step, x[..., a:b]; a step of 2 takes columns from their own input",
        )
    start = Length() if entry.start is None else _end(dims, axis, entry.start)
    stop = extent if entry.stop is None else _end(dims, axis, entry.stop)
    if start.constant == 0 and stop == extent:
        return None
    return _inside(start, stop - start, extent)


def _inside(start: Length, length: Length, extent: Length) -> tuple[Length, Length]:
    known = length.constant
    if known is not None and known < 1:
        raise Refused(f"the slice has {known} elements", "it needs at least one")
    over = (start + length - extent).constant
    if over is not None and over > 0:
        raise Refused(f"the slice ends {over} behind the axis, which has {extent} elements")
    return start, length


def _end(dims: DimTable, axis: Axis, end: object) -> Length:
    """Where a slice begins or ends, counted from the front."""
    expr = bound(end)
    length = _length(dims, expr)
    number = length.constant
    if number is None:
        return length
    if number < 0:
        length = dims.length(axis) + length
        return Length() if (length.constant or 0) < 0 else length
    extent = dims.extent(axis)  # a slice may end behind the axis: it ends with it
    return dims.length(axis) if extent is not None and number > extent else whole(number)


def _length(dims: DimTable, expr: Expr | None) -> Length:
    found = length_of(expr) if expr is not None else None
    if found is None:
        raise Refused("a slice that begins or ends at no whole number or size", _FORMS)
    return dims.normal(found)


def _is_int(entry: object) -> bool:
    return isinstance(entry, int) and not isinstance(entry, bool)
