"""Which grids start with their last blocks: those whose later programs have more work.

Programs start in the order of the grid. Under a causal mask a row sees all keys before it, so the
last rows take longest. If they started last, they would run on while most of the device is idle.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from blockbuster.emit.schedule.order_blocks import OrderBlocks
from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.emit.schedule.site import Site
from blockbuster.emit.tile.known_bounds import KnownBounds, merged
from blockbuster.emit.tile.program import For, Nest, statements
from blockbuster.emit.tile.trips import blocks_in, bound_blocks
from blockbuster.ir.types import Dim
from blockbuster.selection.decisions.wherever import wherever

ORDER = OrderBlocks()


def longest_first(scheduled: Scheduled) -> Scheduled:
    """``scheduled`` with the blocks of a dim last first, where the last have more to do."""
    return wherever(ORDER, scheduled, _pays)


def _pays(scheduled: Scheduled, site: Site) -> bool:
    nest = scheduled.draft.nests[site.nest - 1]
    blocks = blocks_in(nest, bound_blocks(scheduled.draft, scheduled.sizes))
    return is_rising(nest, site.loop, scheduled.sizes, blocks)


def is_rising(nest: Nest, dim: Dim, sizes: Mapping[Dim, int], blocks: Mapping[Dim, int]) -> bool:
    """True if loops over spans have more iterations in the last block of ``dim`` than in the first.

    ``sizes``: by size class. ``blocks``: by dim. What depends on data counts as equal.
    """
    known, rise = KnownBounds(nest, sizes, blocks), 0.0
    for loop in _spans(nest):
        begin, end = known.of(loop)
        dims = (*(d for d in merged(begin, end) if d != dim), dim)
        counts = np.maximum(end.over(dims) - begin.over(dims), 0)
        if counts.size:  # else some dim has no element
            rise += float((counts[..., -1] - counts[..., 0]).mean())
    return rise > 0


def _spans(nest: Nest) -> tuple[For, ...]:
    """The loops that run over a part of their blocks."""
    found = (stmt for stmt in statements(nest.body) if isinstance(stmt, For))
    return tuple(loop for loop in found if loop.span is not None)
