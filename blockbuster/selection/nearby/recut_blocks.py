"""Blocks of single kernels of programs that are several nests from the start: cut anew at the end.

Programs that are one nest get such blocks before they are split (own_blocks.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations

from blockbuster.emit.schedule.block import least_lanes
from blockbuster.emit.schedule.recut import Recut
from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.emit.schedule.site import Applied, Site
from blockbuster.emit.tile.tiling import power_of_two
from blockbuster.ir.types import Dim, size_class
from blockbuster.selection.priors import PRIORS

RECUT = Recut()

Lines = tuple[Applied, ...]
"""Moves behind an arrangement of blocks: for single kernels, as lines of a schedule."""


def kernels_of_dots(scheduled: Scheduled) -> tuple[int, ...]:
    """The numbers of the kernels with dots, if there are several; else none."""
    draft = scheduled.draft
    numbered = enumerate(draft.nests, start=1)
    found = tuple(number for number, nest in numbered if least_lanes(nest, draft.units))
    return found if len(found) > 1 else ()


def joined(lines: Lines, more: Lines) -> Lines:
    """Lines with ``more`` besides, or instead of those that cut the same; blocks come first."""
    known = {(line.move, line.site, line.args.get("dim")): line for line in (*lines, *more)}
    return tuple(sorted(known.values(), key=lambda line: line.move != RECUT.name))


def recuts_near(scheduled: Scheduled, number: int) -> Iterator[Lines]:
    """One dim of a kernel doubled or halved, or one doubled and another halved."""
    nest = scheduled.draft.nests[number - 1]
    dots = least_lanes(nest, scheduled.draft.units)
    lanes = {b.dim: b.lanes for b in nest.blocks if b.dim in dots and not b.whole}
    wide = {d: power_of_two(scheduled.sizes[size_class(d)], dots[d]) for d in lanes}
    most = {d: min(PRIORS.widest_dot_lanes, lanes) for d, lanes in wide.items()}
    wider = {d: 2 * count for d, count in lanes.items() if 2 * count <= most[d]}
    fewer = {d: count // 2 for d, count in lanes.items() if count // 2 >= dots[d]}
    for changed in (wider, fewer):
        yield from ((cut(number, dim, count),) for dim, count in changed.items())
    for one, other in permutations(lanes, 2):
        if one in wider and other in fewer:
            yield cut(number, one, wider[one]), cut(number, other, fewer[other])


def cut(number: int, dim: Dim, lanes: int) -> Applied:
    """Blocks of so many lanes of a dim in a kernel, by number, from 1."""
    return RECUT.line(Site(number), dim=dim, lanes=lanes)
