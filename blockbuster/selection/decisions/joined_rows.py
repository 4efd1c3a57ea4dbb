"""Which loops of the grid are joined, so that the rows of dots run over several axes.

Axes that nothing tells apart are one axis before a program is lowered. A window along an axis keeps
it apart, so the rows of a convolution are those of one line of an image: 56 of them leave a part of
a tile idle, and 14 are too few for an instruction of four warps together, which takes 64.

A part of a program may have no window, though others keep its axes apart: the 1 x 1 convolution in
front of a 3 x 3 one. Joined, the lines of an image follow each other in memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf

from blockbuster.emit.schedule.block import dims_of_dots
from blockbuster.emit.schedule.join import Join, Pair, pair_at
from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.emit.schedule.site import Site, loop_at
from blockbuster.emit.tile.program import ACCESSES, Nest, statements
from blockbuster.ir.types import Dim, size_class
from blockbuster.ir.views import Strided, dims_along
from blockbuster.selection.decisions.wherever import wherever
from blockbuster.selection.priors import PRIORS

JOIN = Join()


def rows_joined(scheduled: Scheduled, tiles: Mapping[Dim, int]) -> Scheduled:
    """``scheduled`` with the rows of dots over several axes where one does not fill tiles.

    ``tiles``: lanes that are asked for, by dim or size class; such a dim stays by itself.
    """

    def pays(now: Scheduled, site: Site) -> bool:
        outer, nest = loop_at(now.draft, site), now.draft.nests[site.nest - 1]
        assert outer is not None
        pair = pair_at(nest, outer)
        asked = any(dim in tiles or size_class(dim) in tiles for dim in pair.dims)
        rows = pair.inner in dims_of_dots(nest, now.draft.units)
        least = PRIORS.joined_rows_factor if _has_windows(nest, pair) else inf
        least = min(least, PRIORS.joined_lines_factor if _are_lines(nest, pair) else inf)
        return rows and not asked and _saving(now, pair) > least

    return wherever(JOIN, scheduled, pays)


def _has_windows(nest: Nest, pair: Pair) -> bool:
    """True if another dim runs along an axis with one of the joined ones."""
    axes = (a for s in statements(nest.body) if isinstance(s, ACCESSES) for a in s.view.dims)
    windows = (axis.runs for axis in axes if isinstance(axis, Strided) and len(axis.runs) > 1)
    return any(run.own in pair.dims for runs in windows for run in runs)


def _are_lines(nest: Nest, pair: Pair) -> bool:
    """True if the dims are the last axes of an array: joined, rows follow each other in memory."""
    views = (stmt.view.dims for stmt in statements(nest.body) if isinstance(stmt, ACCESSES))
    ends = (tuple(map(dims_along, dims[-2:])) for dims in views)
    return any(end == ((pair.outer,), (pair.inner,)) for end in ends)


def _saving(scheduled: Scheduled, pair: Pair) -> float:
    """How many times fewer rows the tiles of both dims have together."""
    outer, inner = (scheduled.sizes[size_class(dim)] for dim in (pair.outer, pair.inner))
    apart, together = outer * -(-inner // PRIORS.busy_rows), -(-outer * inner // PRIORS.busy_rows)
    return apart / max(together, 1)
