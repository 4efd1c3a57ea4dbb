"""Shared memory, roughly: the tiles on their way in all their slots, and what dots read besides.

On a GPU what matrix units read from memory lies in shared memory, and so does each slot of a ring.
A compiler adds room for tiles that change their layout, which is not counted.
"""

from __future__ import annotations

from math import prod

from blockbuster.emit.tile.dtypes import MEMORY
from blockbuster.emit.tile.program import Issue, Let, Load, Nest, Tile, TileProgram, statements
from blockbuster.emit.tile.tiling import Tiling, tiling_of
from blockbuster.emit.tile.uses import is_matrix_dot


def shared_bytes(program: TileProgram, nest: Nest) -> int:
    """Bytes that a program of the grid of ``nest`` takes; ``program`` has dtypes."""
    tiling = tiling_of(program, nest)
    body = list(statements(nest.body))
    dots = [stmt for stmt in body if isinstance(stmt, Let) and is_matrix_dot(stmt, tiling)]
    read = {tile for dot in dots for tile in dot.args}
    total = 0
    for stmt in body:
        if isinstance(stmt, Issue):
            total += stmt.slots * tile_bytes(stmt.tile, tiling)
        elif isinstance(stmt, Load) and stmt.target in read:
            total += tile_bytes(stmt.target, tiling)
    return total


def tile_bytes(tile: Tile, tiling: Tiling) -> int:
    """Bytes of all lanes of a tile that is loaded."""
    return MEMORY[tile.dtype].bytes * prod(tiling.blocks[dim] for dim in tiling.lanes(tile))
