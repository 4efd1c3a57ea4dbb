"""Elements of an array at positions that are values: ``cache[:, :, at] = new``.

A single position is compared with those along the axis, and each element is the new one or the old
one. So nothing is copied where the result is read: a cache with a new token is read as it lies in
memory, beside the token. Of several positions, each element looks up the last one that names it.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from blockbuster.frontend.captured import looked_at
from blockbuster.frontend.indexing import is_on_axis
from blockbuster.frontend.kinds import WHOLES
from blockbuster.frontend.put_back import places
from blockbuster.frontend.source import Refused
from blockbuster.frontend.torch import on_host

if TYPE_CHECKING:
    from blockbuster.frontend.array import TracedArray


def expect_on_axis(
    x: TracedArray, axis: int, at: Any, op: str, *,
    from_end: bool = True, ignored: int | None = None,
) -> None:  # fmt: skip
    """Raise NoSuchPosition, an IndexError with the user's line, for a position not on the axis.

    ``at``: positions for the operation ``op``. Not looked at are those that are computed, those of
    an argument or ``ignored``, on an axis of unknown size, or of an array that is not traced.
    ``from_end``: negative ones count from the end.
    """
    if not hasattr(x, "axes"):
        return
    if hasattr(at, "axes"):  # a constant may have become an input
        at = x.trace.recorded[0][at.value.port].value if at.value.node < 0 else None
    known = None if at is None else looked_at(at if hasattr(at, "dtype") else np.asarray(at))
    if known is None or "int" not in str(known.dtype):
        return
    known = known[known != ignored] if ignored is not None else known
    ends = (int(known.min()), int(known.max())) if math.prod(known.shape) else ()
    for end in ends:
        on_axis = partial(is_on_axis, x.trace.dims, x.axes[axis], end, from_end=from_end)
        x.trace.checked(on_axis, op, x)


def as_slice(x: TracedArray, axis: int, at: Any) -> slice | None:
    """The slice of an axis that holds the elements at positions which the traced function makes
    itself, if they lie in equal steps on the axis.
    """
    made_here = not hasattr(at, "axes") and x.trace.captures.is_made_here(at)
    if not made_here or len(at.shape) != 1 or "int" not in str(at.dtype):
        return None
    known = on_host(at).astype(np.int64)
    step = int(known[1] - known[0]) if known.size > 1 else 1
    if not known.size or known.min() < 0 or not step or (np.diff(known) != step).any():
        return None
    if not x.trace.dims.has(x.axes[axis], int(known.max()) + 1):
        return None
    behind = int(known[-1]) + (1 if step > 0 else -1)
    return slice(int(known[0]), None if behind < 0 else behind, step)


def with_elements(x: TracedArray, at: Any, axis: int, value: Any) -> TracedArray:
    """``x`` with ``value`` at the positions ``at`` along ``axis``.

    ``at``: integers of no axis or of one, counted from the end where they are negative. ``value``:
    a number, or an array that broadcasts to what ``x`` has at them, in which the axes of ``at``
    stand for ``axis``. If a position occurs several times, its last value counts, as in NumPy.
    Raises Refused for other positions.
    """
    expect_on_axis(x, axis, at, "x[at]")
    at = x.trace.array(at)
    if at.kind not in WHOLES or at.ndim > 1:
        raise Refused(f"{at.kind} positions of {at.ndim} axes", "positions are integers in a row")
    if at.ndim == 0:
        at, value = at[None], _with_axis(x, axis, value)
    own = places(x, axis)[:, None]
    named = (own == at) | (own - x.shape[axis] == at)
    if at.trace.dims.is_unit(at.axes[0]):
        hit = named[:, 0]
    else:
        last = x.trace.record("where", (named, places(at, 0), -1)).max(axis=1)
        hit, value = last >= 0, _looked_up(x, axis, value, at, last)
    behind = (slice(None), *(None,) * (x.ndim - 1 - axis))
    return x.trace.record("where", (hit[behind], value, x))


def _with_axis(x: TracedArray, axis: int, value: Any) -> Any:
    """``value`` with an axis of one element where ``x`` has ``axis``, if it has axes before it."""
    before = getattr(value, "ndim", 0) - (x.ndim - 1 - axis)
    return value[(*(slice(None),) * before, None)] if before > 0 else value


def _looked_up(x: TracedArray, axis: int, value: Any, at: TracedArray, last: TracedArray) -> Any:
    """For each place along the axis its value, and any one for a place that has none."""
    mine = getattr(value, "ndim", 0) - (x.ndim - axis)
    if mine < 0 or x.trace.dims.is_unit(value.axes[mine]):
        return value
    x.trace.dims.unify(value.axes[mine], at.axes[0])
    which = x.trace.record("maximum", (last, 0))
    return x.trace.spellings.numpy[np.take].function(value, which, mine)
