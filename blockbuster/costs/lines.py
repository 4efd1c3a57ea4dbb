"""How many pieces of memory a tile touches: short rows take whole lines all the same.

Processors ask the cache for lines, of which it moves the sectors that are needed. A tile whose rows
are shorter than a line takes as many requests as one with whole lines.
"""

from __future__ import annotations

from math import prod

from blockbuster.emit.tile.dtypes import MEMORY
from blockbuster.emit.tile.extents import Extents
from blockbuster.emit.tile.program import Tile, View
from blockbuster.ir.views import AxisView, array_dim, dims_along

LINE, SECTOR = 128, 32
"""Bytes of a line, and of the parts of it that are moved if they are asked for."""


def pieces(view: View, tile: Tile, extents: Extents, size: int) -> int:
    """How many pieces of ``size`` bytes a tile of an access touches, in an array without gaps.

    From the innermost axis outwards: elements that lie no further apart than a piece make one
    region; others are regions of their own.
    """
    stride = region = MEMORY[view.buffer.dtype].bytes
    regions = 1
    for axis, buffer_axis in zip(reversed(view.dims), reversed(view.buffer.axes), strict=True):
        whole = array_dim(axis)
        if whole is None:
            continue  # one entry
        lanes = 1 if buffer_axis.per_block else _lanes(axis, tile, extents)
        if stride <= max(size, region):
            region += (lanes - 1) * stride
        else:
            regions *= lanes
        stride *= extents.trips(whole) if buffer_axis.per_block else extents.size(whole)
    return regions * -(-region // size)


def _lanes(axis: AxisView, tile: Tile, extents: Extents) -> int:
    """The elements of a tile along an axis; a slice counts as if it had no gaps."""
    dims = [dim for dim in dims_along(axis) if dim in tile.axes]
    return prod(min(extents.blocks[dim], extents.size(dim)) for dim in dims)
