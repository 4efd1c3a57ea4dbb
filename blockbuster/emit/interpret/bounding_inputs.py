"""The inputs of a tile program that bound its loops: exact trials draw whole numbers for them."""

from __future__ import annotations

from blockbuster.emit.tile.dataflow import defined, folded, operands
from blockbuster.emit.tile.program import (
    INPUT,
    BlockOf,
    Buffer,
    For,
    Nest,
    Store,
    Tile,
    TileProgram,
    statements,
)
from blockbuster.emit.tile.rings import arrivals


def bounding_inputs(program: TileProgram) -> tuple[str, ...]:
    """The names of the inputs from which numbers of blocks are computed, through any nests."""
    wanted: dict[Buffer, None] = {}
    known = -1
    while known < len(wanted):
        known = len(wanted)
        for nest in reversed(program.nests):
            wanted.update(dict.fromkeys(_loaded(nest, wanted)))
    return tuple(buffer.name for buffer in wanted if buffer.space == INPUT)


def _loaded(nest: Nest, wanted: dict[Buffer, None]) -> tuple[Buffer, ...]:
    """The arrays that make, in ``nest``, what bounds loops or is stored in ``wanted`` arrays."""
    body = tuple(statements(nest.body))
    found: dict[Tile, None] = {}
    for stmt in body:
        if isinstance(stmt, For | BlockOf) or (
            isinstance(stmt, Store) and stmt.view.buffer in wanted
        ):
            found.update(dict.fromkeys(operands(stmt)))
    known = -1
    while known < len(found):  # what a loop folds may be read before the fold stands
        known = len(found)
        for stmt in reversed(body):
            if defined(stmt) in found or any(tile in found for tile in folded(stmt)):
                found.update(dict.fromkeys(operands(stmt)))
    return tuple(view.buffer for tile, view in arrivals(nest.body) if tile in found)
