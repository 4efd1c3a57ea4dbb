"""How much of memory's lines a tile touches: short rows take whole lines all the same.

Processors ask the cache for lines, of which it moves the sectors that are needed. A tile whose rows
are shorter than a line takes as many requests as one with whole lines.
"""

from __future__ import annotations

from blockbuster.emit.tile.dtypes import MEMORY
from blockbuster.emit.tile.extents import Extents
from blockbuster.emit.tile.program import Tile, View

LINE, SECTOR = 128, 32
"""Bytes of a line, and of the parts of it that are moved if they are asked for."""


def run_bytes(view: View, tile: Tile, extents: Extents) -> int:
    """Bytes of a tile that lie side by side in memory."""
    run = MEMORY[view.buffer.dtype].bytes
    for dim, axis in zip(reversed(view.dims), reversed(view.buffer.axes), strict=True):
        if axis.dim is None:
            continue  # one entry
        if axis.per_block or not isinstance(dim, str) or dim not in tile.axes:
            break
        lanes, size = min(extents.blocks[dim], extents.size(dim)), extents.size(dim)
        run *= lanes
        if lanes < size:
            break
    return run


def pieces(moved: int, run: int, size: int) -> int:
    """How many pieces of memory of a size are touched where ``moved`` bytes lie in runs.

    >>> pieces(1024, 16, LINE), pieces(1024, 256, LINE), pieces(1024, 16, SECTOR)
    (64, 8, 64)
    """
    return moved * -(-run // size) // run
