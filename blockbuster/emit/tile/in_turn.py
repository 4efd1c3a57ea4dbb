"""Tiles in which two dims take turns along the last axis of the array that they are stored in.

Element g of d stands at ``d * 2 + g``: two neighbours along g, then two of the next d. Triton gives
neighbouring lanes to dims by how many neighbours in memory they have, and orders the other dims by
their place in the tile, 3.6 the first one first: a warp then writes two elements in each of many
rows. Pixels shuffled from 16 x 256 x 28 x 28 took an H100 20 microseconds so, and take 5 where both
dims together are the columns of a row (print/triton/rows.py).
"""

from __future__ import annotations

from blockbuster.emit.tile.program import View
from blockbuster.emit.tile.tiling import Tiling
from blockbuster.ir.lengths import ONE
from blockbuster.ir.types import Dim
from blockbuster.ir.views import Strided


def dims_in_turn(view: View, lanes: tuple[Dim, ...], tiling: Tiling) -> tuple[Dim, ...]:
    """The two dims of a tile that take turns along the last axis of an array; none if no two do, or
    if the tile has no others.
    """
    axis = view.dims[-1] if view.dims else None
    if not isinstance(axis, Strided) or len(axis.runs) < 2 or len(lanes) < 3:
        return ()
    outer, inner = axis.runs[-2:]
    plain = outer.share is None and inner.share is None and {outer.dim, inner.dim} <= {*lanes}
    if not plain or inner.step != ONE or tiling.ragged(inner.dim):
        return ()
    return (outer.dim, inner.dim) if outer.step.constant == tiling.block(inner.dim) > 1 else ()
