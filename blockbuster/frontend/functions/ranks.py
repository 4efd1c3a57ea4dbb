"""Functions that put elements in order, or choose those that come first.

Three ways: a fold of a row for each of a few elements; for the elements of a short row, how many
come before each, by a comparison of each pair; else a library's function between kernels.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from blockbuster.frontend.array import TracedArray, apply
from blockbuster.frontend.functions.choices import element_where
from blockbuster.frontend.functions.filled import positions
from blockbuster.frontend.functions.joins import concat
from blockbuster.frontend.functions.pointwise import where
from blockbuster.frontend.functions.reductions import max, min, sum
from blockbuster.frontend.functions.row import Array, Row, example
from blockbuster.frontend.functions.searches import counted
from blockbuster.frontend.functions.shapes import moveaxis
from blockbuster.frontend.kinds import POSITION, WHOLES
from blockbuster.frontend.limits import MOST_CHOSEN, MOST_COUNTED, MOST_SORTED
from blockbuster.frontend.moves import Ranked
from blockbuster.frontend.shapes import axes_of
from blockbuster.frontend.source import trace_error
from blockbuster.ir.lengths import whole


def topk(x: Array, k: int, axis: int = -1, largest: bool = True) -> tuple[Array, Array]:
    """The ``k`` largest or smallest elements along an axis, in order, and their positions.

    Of equal elements the first comes first in kernels and in NumPy; NaN counts as larger than
    infinity.
    """
    if isinstance(x, TracedArray):
        return ranked(x, k, axis, largest)
    (at,) = axes_of("topk", axis, x.ndim)
    if not 1 <= k <= x.shape[at]:
        raise ValueError(f"topk of {k} elements of {x.shape[at]}")
    values, places = (Ranked(at, k, _end(largest), gives) for gives in ("values", "places"))
    return values(x), places(x)


def ranked(x: Array, k: int, axis: int = -1, largest: bool = True) -> tuple[Array, Array]:
    """``topk`` of a traced array. Raises TraceError for an axis of fewer elements."""
    (at,) = axes_of("topk", axis, len(x.shape))
    dims = x.trace.dims
    spare = dims.length(x.axes[at]) - whole(k)
    fits = dims.is_not_negative(spare)
    if k < 1 or fits is False:
        reason = f"topk of {k} elements of {dims.show((x.axes[at],))}"
        raise trace_error(reason, hint="k is at least 1, and at most the elements of the axis")
    if fits is None:
        dims.assume(spare)
    if k <= MOST_CHOSEN:
        return _one_by_one(x, k, at, largest)
    if _is_short(x, at, MOST_COUNTED):
        return _by_counting(x, k, at, largest)
    shape = (*x.axes[:at], dims.derived(whole(k), "ranked", k), *x.axes[at + 1 :])
    values, found = (Ranked(at, k, _end(largest), gives) for gives in ("values", "places"))
    return (x.trace.custom(values, (x,), shape, str(values), x.kind),
            x.trace.custom(found, (x,), shape, str(found), POSITION))  # fmt: skip


def in_order(x: Array, axis: int | None, largest: bool = False) -> tuple[Array, Array] | None:
    """The elements of a short row in order, and their positions; None if it is not known to be
    short, or if a library is to put it in order.
    """
    if not isinstance(x, TracedArray) or (axis is None and x.ndim > 1):
        return None
    (at,) = axes_of("sort", -1 if axis is None else axis, x.ndim)
    is_short = _is_short(x, at, MOST_SORTED)
    return _by_counting(x, x.shape[at], at, largest) if is_short else None


def _end(largest: bool) -> str:
    return "largest" if largest else "smallest"


def _is_short(x: TracedArray, at: int, most: int) -> bool:
    """True if an axis is known to have at most so many elements, in a program for a GPU: on a CPU
    a library puts elements in order in less time.
    """
    return not x.trace.for_cpu and x.trace.dims.have((x.axes[at],), most + 1) is False


def _by_counting(x: TracedArray, k: Any, at: int, largest: bool) -> tuple[Array, Array]:
    """The first ``k`` elements of a row in order, and their positions: in place j stands the one
    before which j others come. Of equal elements the first comes first.
    """
    last = x.ndim - 1
    if at != last:
        values, found = _by_counting(moveaxis(x, at, last), k, last, largest)
        return moveaxis(values, last, at), moveaxis(found, last, at)
    places = counted("topk", x, (last,), times=2)
    keys, order = _keys(x, places, last, largest)
    own, others = keys[..., :, None], keys[..., None, :]
    is_another = places != places[:, None]  # none before itself, whatever rounds one of the two
    is_ahead = (others > own if largest else others < own) & is_another
    is_first = (others == own) & (order[..., None, :] < order[..., :, None])
    rank = sum(is_ahead | is_first, -1)
    hit = rank[..., None, :] == positions(x.trace, k, 0, 1)[:, None]
    values = element_where(hit, x[..., None, :], -1, False)
    return values, sum(where(hit, places, 0), -1)


def _one_by_one(x: Array, k: int, at: int, largest: bool) -> tuple[Array, Array]:
    """The same by a fold for each element, among those behind the one before."""
    places = counted("topk", x, (at,), times=2)
    extremum, is_whole = max if largest else min, x.kind in WHOLES
    keys, order = _keys(x, places, at, largest)
    if is_whole:  # no float64 is the largest integer, so one of the elements stands behind all
        last = (min if largest else max)(x, at, True)
    else:
        last = -np.inf if largest else np.inf
    left, behind, values, found = keys, None, [], []
    for _ in range(k):
        best = extremum(left, at, True)
        hit = left == best if behind is None else (left == best) & behind
        place = min(where(hit, order, np.inf), at, True)
        value, position = (best, place) if is_whole else _undone(best, place, x, at, largest)
        values.append(value)
        found.append(apply("whole", position))
        behind = (keys < best if largest else keys > best) | ((keys == best) & (order > place))
        left = where(behind, keys, last)
    return concat(values, at), concat(found, at)


def _first(x: Any, k: int, axis: int = -1, largest: bool = True) -> tuple[Any, Any]:
    """``topk`` by NumPy's stable order."""
    seen = -x if largest else x
    order = np.argsort(seen, axis, kind="stable").take(range(k), axis)
    return np.take_along_axis(x, order, axis), order


def _keys(x: Array, places: Array, at: int, largest: bool) -> tuple[Array, Array]:
    """Elements as keys, floats with infinity for NaN, and numbers that order those of one key.

    Of the largest, NaN comes before infinity, of the smallest behind it: the elements that come
    later have their positions behind the axis.
    """
    if x.kind in WHOLES:
        return x, places
    undefined = x != x
    later = ~undefined if largest else undefined
    return where(undefined, np.inf, x), where(later, places + x.shape[at], places)


def _undone(key: Array, place: Array, x: Array, at: int, largest: bool) -> tuple[Array, Array]:
    """The element and the position that a key and a place of ``_keys`` stand for."""
    later = place >= x.shape[at]
    value = where(later, key, np.nan) if largest else where(later, np.nan, key)
    return value, where(later, place - x.shape[at], place)


ROWS = (
    Row(topk, "Choices by position", reference=_first, examples=(
        example("M N", 2), example("M N", 3, axis=0), example("M N=9", 9, largest=False)),
        note=f"Up to {MOST_CHOSEN} are folds; of rows of up to {MOST_COUNTED} elements, whose size "
        "is known, any are comparisons of each pair; else a library's function runs between "
        "kernels."),
)  # fmt: skip
