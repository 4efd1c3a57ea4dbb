"""Tile traffic: the elements that a tile program moves, by trip counts. Oracle: a counting run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod

from blockbuster.emit.tile.dataflow import accessed
from blockbuster.emit.tile.extents import Extents, Loops
from blockbuster.emit.tile.program import For, Issue, Load, Stmt, Store, TileProgram
from blockbuster.emit.tile.trips import blocks_in, bound_blocks
from blockbuster.ir.types import Dim


@dataclass(frozen=True)
class Moved:
    """Traffic between global memory and tiles: elements, and the number of tiles."""

    elements_loaded: int = 0
    elements_stored: int = 0
    tiles_loaded: int = 0
    tiles_stored: int = 0

    def __add__(self, other: Moved) -> Moved:
        return Moved(
            self.elements_loaded + other.elements_loaded,
            self.elements_stored + other.elements_stored,
            self.tiles_loaded + other.tiles_loaded,
            self.tiles_stored + other.tiles_stored,
        )


def tile_traffic(
    program: TileProgram, sizes: Mapping[Dim, int], block_sizes: Mapping[Dim, int] | None = None
) -> dict[str, Moved]:
    """Traffic per array, by name. Two views of one array count as one array.

    ``sizes`` gives every size class, ``block_sizes`` what is not one block (1 for list-only dims)
    and what nests do not cut themselves. Ragged blocks count with the elements they have.
    """
    buffers = (*program.inputs, *program.outputs, *program.workspaces)
    moved = {buffer.name: Moved() for buffer in buffers}
    blocks = bound_blocks(program, sizes, block_sizes)
    for nest in program.nests:
        extents = Extents(nest, sizes, blocks_in(nest, blocks))
        _count(nest.body, extents.grid, extents, moved)
    return moved


@dataclass(frozen=True)
class NestTraffic:
    """The traffic of one nest, in elements, and how many programs share the work.

    ``arrays``: those of each array, by name.
    """

    elements: int
    programs: int
    arrays: Mapping[str, int] = field(default_factory=dict)


def traffic_by_nest(
    program: TileProgram,
    sizes: Mapping[Dim, int],
    block_sizes: Mapping[Dim, int] | None = None,
    *,
    padded: tuple[Dim, ...] = (),
) -> tuple[NestTraffic, ...]:
    """The traffic of each nest, over all arrays; sizes as for ``tile_traffic``.

    Lanes past the end of ``padded`` dims count where they are loaded: they are zeros, written to
    shared memory and multiplied like elements. Storing them is masked and costs nothing.
    """
    blocks = bound_blocks(program, sizes, block_sizes)
    found = []
    for nest in program.nests:
        extents = Extents(nest, sizes, blocks_in(nest, blocks), padded)
        moved: dict[str, Moved] = defaultdict(Moved)
        _count(nest.body, extents.grid, extents, moved)
        arrays = {name: m.elements_loaded + m.elements_stored for name, m in moved.items()}
        programs = max(1, prod(map(extents.trips, nest.grid)))
        found.append(NestTraffic(sum(arrays.values()), programs, arrays))
    return tuple(found)


def _count(body: tuple[Stmt, ...], loops: Loops, extents: Extents, moved: dict[str, Moved]) -> None:
    for stmt in body:
        if isinstance(stmt, For):
            _count(stmt.body, extents.inside(stmt, loops), extents, moved)
        elif isinstance(stmt, Load | Issue | Store):
            sliced, stored = stmt.view.sliced(accessed(stmt)), isinstance(stmt, Store)
            elements = extents.elements(sliced, loops, padded=not stored)
            tiles = extents.tiles(loops)
            moved[stmt.view.buffer.name] += (
                Moved(elements_stored=elements, tiles_stored=tiles)
                if stored
                else Moved(elements_loaded=elements, tiles_loaded=tiles)
            )
