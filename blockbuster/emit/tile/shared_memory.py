"""Shared memory, roughly: the tiles on their way in all their slots, and what dots read besides.

On a GPU what matrix units read from memory lies in shared memory, and so does each slot of a ring.
Loops that follow each other have the same memory. A compiler adds room for tiles that change their
layout, which is not counted.
"""

from __future__ import annotations

from math import prod

from blockbuster.emit.tile.dtypes import MEMORY
from blockbuster.emit.tile.program import (
    For,
    Issue,
    Let,
    Load,
    Nest,
    Stmt,
    Tile,
    TileProgram,
    statements,
)
from blockbuster.emit.tile.tiling import Tiling, tiling_of
from blockbuster.emit.tile.uses import is_matrix_dot


def shared_bytes(program: TileProgram, nest: Nest) -> int:
    """Bytes that a program of the grid of ``nest`` takes; ``program`` has dtypes."""
    tiling = tiling_of(program, nest)
    lets = (stmt for stmt in statements(nest.body) if isinstance(stmt, Let))
    read = {tile for let in lets if is_matrix_dot(let, tiling) for tile in let.args}

    def taken(body: tuple[Stmt, ...]) -> int:
        own, most = 0, 0
        for stmt in body:
            if isinstance(stmt, For):
                most = max(most, taken(stmt.body))
            elif isinstance(stmt, Issue):
                own += stmt.slots * tile_bytes(stmt.tile, tiling)
            elif isinstance(stmt, Load) and stmt.target in read:
                own += tile_bytes(stmt.target, tiling)
        return own + most

    return taken(nest.body)


def tile_bytes(tile: Tile, tiling: Tiling) -> int:
    """Bytes of all lanes of a tile that is loaded."""
    return MEMORY[tile.dtype].bytes * prod(tiling.blocks[dim] for dim in tiling.lanes(tile))
