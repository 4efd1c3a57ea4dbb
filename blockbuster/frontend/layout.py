"""Layouts: the dims, their order and the item axes under which an array becomes nested lists.

A value may be demanded in several layouts. Each operation states which layouts it can make, and
which it then demands of its operands. Inputs satisfy any layout, because a view of an array costs
nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import NamedTuple

from blockbuster.frontend.program import Shape
from blockbuster.ir.expr import Arg
from blockbuster.ir.ops import Op, Pointwise, Relabel, Transpose
from blockbuster.ir.types import Dim, Type, fresh_dim


class Level(NamedTuple):
    """One list level: it runs over ``axis`` of the array, under the name ``dim``.

    ``blocked`` tells whether the items keep the axis. Where they do not, the dim is list-only: its
    blocks have one element everywhere.
    """

    axis: int
    dim: Dim
    blocked: bool


Layout = tuple[Level, ...]
"""The levels of a value, outermost first. No dim occurs twice."""


def dims_of(layout: Layout) -> tuple[Dim, ...]:
    """The dims of the levels, outermost first."""
    return tuple(level.dim for level in layout)


def type_of(layout: Layout) -> Type:
    """The block type of a value in this layout."""
    return Type(dims_of(layout), tuple(level.dim for level in layout if level.blocked))


@lru_cache(maxsize=1024)
def natural(shape: Shape) -> Layout:
    """Axes in order, the last two blocked, a repeated dim primed; unit axes are left out."""
    levels: list[Level] = []
    for axis, dim in enumerate(shape):
        if isinstance(dim, str):
            fresh = fresh_dim(dim, [level.dim for level in levels])
            levels.append(Level(axis, fresh, axis >= len(shape) - 2))
    return tuple(levels)


def moved(layout: Iterable[Level], axis_of: Callable[[int], int | None]) -> Layout:
    """The levels with their axes mapped; those mapped to None are left out."""
    found = [(axis_of(level.axis), level) for level in layout]
    return tuple([Level(at, level.dim, level.blocked) for at, level in found if at is not None])


def under(shape: Shape, layout: Layout) -> Layout:
    """The levels under the dims of ``shape``, which a reader may have under others."""
    return tuple([Level(axis, str(shape[axis]), blocked) for axis, _, blocked in layout])


def choose(candidates: Iterable[Layout], preferred: Layout) -> Layout | None:
    """The layout to compute a value in: the preferred one if it is asked for, else the first."""
    wanted = list(candidates)
    return preferred if preferred in wanted else wanted[0] if wanted else None


def step_back(want: Layout, have: Layout) -> tuple[Layout, Op]:
    """The last op on the way from ``have`` to ``want``, and the layout it starts from.

    Both describe the same axes and differ. A chain of such steps first relabels dims one by one,
    then drops or adds axes of extent 1, then reorders.
    """
    levels = {level.axis: level for level in want}
    ordered = tuple(levels[level.axis] for level in have)
    if ordered != want:
        reordered = type_of(want)
        return ordered, Transpose(reordered.lists, reordered.axes)
    blocked = tuple(w._replace(blocked=h.blocked) for w, h in zip(want, have, strict=True))
    if blocked != want:
        return blocked, Pointwise(Arg(0), type_of(want).axes)
    used = dims_of(want)
    differing = [i for i, (w, h) in enumerate(zip(want, have, strict=True)) if w.dim != h.dim]
    direct = [i for i in differing if have[i].dim not in used]
    at = (direct or differing)[0]
    # without a direct one dims change places: one of them steps aside
    old = have[at].dim if direct else fresh_dim(have[at].dim, (*used, *dims_of(have)))
    before = (*want[:at], want[at]._replace(dim=old), *want[at + 1 :])
    return before, Relabel(old, want[at].dim)
