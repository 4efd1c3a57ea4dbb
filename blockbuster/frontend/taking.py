"""``x[key]``: views of slices and positions; an array of integers takes elements.

A list counts as an array, and a NumPy or torch number as a number. In NumPy, single positions that
stand next to an array of positions are taken together with it; torch takes all of them first.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np

from blockbuster.frontend.at_positions import expect_on_axis
from blockbuster.frontend.dims import DimTable
from blockbuster.frontend.indexing import piece, spread, whole_number
from blockbuster.frontend.kinds import MASK, POSITION, dtype_of_kind
from blockbuster.frontend.program import Equation
from blockbuster.frontend.sizes import SizeExpr
from blockbuster.frontend.source import Refused
from blockbuster.frontend.torch import on_host
from blockbuster.ir.lengths import whole

if TYPE_CHECKING:
    from blockbuster.frontend.array import TracedArray
    from blockbuster.frontend.trace import Trace


def indexed(trace: Trace, x: TracedArray, key: tuple[Any, ...]) -> TracedArray:
    """``x[key]``: slices and single positions, one axis after the other, then new axes; then the
    elements that an array of integers takes of the axis where it stands.
    """
    key = tuple(map(plain, key))
    truths = [at for at, entry in enumerate(key) if isinstance(entry, bool)]
    if len(truths) == 1 and not any(map(_is_array, key)) and not any(map(_is_single, key)):
        return _if_true(trace, x, key, truths[0])
    if _takes_one_a_row(trace.dims, trace.recorded[1], x, key):
        columns = key[1][(slice(None), *(None,) * (x.ndim - 1))]
        along = trace.spellings.numpy[np.take_along_axis].function
        one: TracedArray = along(x, columns, 1)
        return one[:, 0]
    found = trace.checked(lambda: arrays_among(key, trace.of_tensors), "indexing", x)
    if found is None:
        return _viewed(trace, x, key)
    place, count, axis = found
    whole = (slice(None),) * count
    rest = _viewed(trace, x, (*key[:place], *whole, *key[place + count :]))
    axis, at = axis % rest.ndim, key[place]
    if count > 1:
        rest, at = _as_one_axis(rest, axis, key[place : place + count])
    taken: TracedArray = trace.spellings.numpy[np.take].function(rest, at, axis)
    return taken


def _as_one_axis(x: TracedArray, axis: int, places: Sequence[Any]) -> tuple[TracedArray, Any]:
    """``x`` with as many axes from ``axis`` on merged, and the positions along the merged one.

    Where a position is not on its own axis, the merged one is the number of all elements: no array
    has an element there, so that taking it fails.
    """
    behind = axis + len(places)
    extents, where = x.shape[axis:behind], x.trace.spellings.numpy[np.where].function
    at: Any = 0
    outside: Any = None
    for number, (extent, given) in enumerate(zip(extents, places, strict=True), axis):
        expect_on_axis(x, number, given, "indexing")
        place = _in_int64(x.trace, given)
        off = (place < -extent) | (place >= extent)
        outside = off if outside is None else outside | off
        at = at * extent + where(place < 0, place + extent, place)
    at = where(outside, math.prod(extents), at)
    return x.trace.reshape(x, (*x.shape[:axis], -1, *x.shape[behind:])), at


def _in_int64(trace: Trace, given: Any) -> TracedArray:
    """Positions in int64: the products of narrower ones with extents would overflow."""
    place = given + 0 if hasattr(given, "axes") else trace.array(given)
    return place if dtype_of_kind(place.kind) == POSITION else trace.integers(place, POSITION)


def _if_true(trace: Trace, x: TracedArray, key: tuple[Any, ...], place: int) -> TracedArray:
    """Replace a truth value by a new axis: of one element for True, of none for False."""
    found = _viewed(trace, x, (*key[:place], None, *key[place + 1 :]))
    axis = _axis_of(key, place) % found.ndim
    return found if key[place] else _piece(trace, found, axis, slice(0))


def _viewed(trace: Trace, x: TracedArray, key: tuple[Any, ...]) -> TracedArray:
    entries = trace.checked(lambda: spread(key, x.ndim), "indexing", x)
    axis = 0
    for entry in entries:
        if entry is not None:
            x = _piece(trace, x, axis, entry)
            axis += 1
    position = count()
    places = [None if e is None else (next(position), e) for e in entries]
    axes = tuple(p and p[0] for p in places if p is None or isinstance(p[1], slice))
    return x if axes == tuple(range(x.ndim)) else trace.record("expand", (x,), {"axes": axes})


def _piece(trace: Trace, x: TracedArray, axis: int, entry: slice | SizeExpr | int) -> TracedArray:
    found = trace.checked(lambda: piece(trace.dims, x.axes[axis], entry), "slice", x)
    if found is None:
        return x
    if found.length != trace.dims.length(x.axes[axis]):
        x = trace.record(found.operator, (x,), {"axis": axis, **found.params})
    return trace.spellings.numpy[np.flip].function(x, axis) if found.backwards else x


def plain(entry: Any) -> Any:
    """An entry with Python's own whole numbers for all others, and with an array for a list."""
    if isinstance(entry, np.bool_):
        return bool(entry)
    number = whole_number(entry)
    if number is not None or not isinstance(entry, list | tuple):
        return entry if number is None else number
    return positions_of(entry)


def positions_of(given: Any) -> Any:
    """The array of a list of positions, or of a list of truth values that chooses some."""
    if not isinstance(given, list | tuple | int):
        return given
    found = np.asarray(given)
    if found.ndim == 1 and found.dtype == bool:
        return np.flatnonzero(found)
    return found if found.size else found.astype(np.int64)


def _is_single(entry: Any) -> bool:
    """True for a single position: the result does not have its axis."""
    return isinstance(entry, int | SizeExpr) and not isinstance(entry, bool)


def _is_array(entry: Any) -> bool:
    """True for what takes elements: an array of positions, also of one that has no axis."""
    return bool(getattr(entry, "ndim", 0)) or hasattr(entry, "axes")


def of_several() -> Refused:
    """What an array among other indices is refused with."""
    return Refused("an array beside other positions as an index", "index one after the other")


def arrays_among(key: tuple[Any, ...], of_tensors: bool) -> tuple[int, int, int] | None:
    """The place in ``key`` of arrays that take elements together, how many stand side by side
    there, and the first axis that they take them of behind what the others leave.

    None if there is no array. Raises Refused if the result's axes would stand elsewhere.
    """
    places = [place for place, entry in enumerate(key) if _is_array(entry)]
    if not places:
        return None
    if any(map(_is_mask, (key[place] for place in places))):
        hint = "its size is not known: bb.where(mask, x, 0) keeps the shape"
        raise Refused("a mask as an index", hint)
    place, count = places[0], len(places)
    alone = [at for at, entry in enumerate(key) if _is_single(entry)]
    together = sorted([*places, *alone])
    are_beside = together[-1] - together[0] == len(together) - 1
    in_a_row = places[-1] - place == count - 1
    if not (are_beside or (of_tensors and count == 1)) or not in_a_row:
        raise of_several()
    return place, count, _axis_of(key, place)


def _is_mask(entry: Any) -> bool:
    is_mask = getattr(entry, "kind", "") == MASK
    return is_mask or str(getattr(entry, "dtype", "")).endswith("bool")


def _axis_of(key: tuple[Any, ...], place: int) -> int:
    """The axis that the entry at ``place`` leaves, from behind where ``...`` stands before it."""
    before, behind = (
        sum(not _is_single(entry) for entry in part) for part in (key[:place], key[place + 1 :])
    )
    return -1 - behind if Ellipsis in key[:place] else before


def _takes_one_a_row(
    dims: DimTable, equations: Sequence[Equation], x: Any, key: tuple[Any, ...]
) -> bool:
    """True for ``x[np.arange(n), columns]`` of ``n`` rows, ``equations`` being what was traced."""
    if len(key) != 2 or x.ndim < 2 or any(getattr(each, "ndim", 0) != 1 for each in key):
        return False
    rows, number = key[0], dims.length(x.axes[0])
    if not hasattr(rows, "axes"):
        known = len(rows)
        at_least = x.ndim == 2 and dims.has(x.axes[0], known)
        are_all = number == whole(known) or (at_least and not dims.has(x.axes[0], known + 1))
        return bool(are_all) and np.array_equal(on_host(rows), range(known))
    made = equations[rows.value.node].op if rows.value.node >= 0 else ""
    return made == "arange" and dims.length(rows.axes[0]) == number
