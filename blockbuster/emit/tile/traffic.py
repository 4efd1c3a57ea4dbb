"""Tile traffic: what a tile program moves, from trip counts; its oracle is a counting run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from math import prod

from blockbuster.emit.tile.dataflow import accessed
from blockbuster.emit.tile.program import For, Issue, Load, Stmt, Store, TileProgram
from blockbuster.emit.tile.trips import blocks_in, bound_blocks
from blockbuster.ir.types import Dim, size_class


@dataclass(frozen=True)
class Moved:
    """What moves between global memory and tiles: elements, and the number of tiles."""

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
        _count(nest.body, nest.grid, Extents(sizes, blocks_in(nest, blocks)), moved)
    return moved


@dataclass(frozen=True)
class NestTraffic:
    """What one nest moves, in elements, and how many programs share the work.

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
        extents = Extents(sizes, blocks_in(nest, blocks), padded)
        moved: dict[str, Moved] = defaultdict(Moved)
        _count(nest.body, nest.grid, extents, moved)
        arrays = {name: m.elements_loaded + m.elements_stored for name, m in moved.items()}
        programs = max(1, prod(map(extents.trips, nest.grid)))
        found.append(NestTraffic(sum(arrays.values()), programs, arrays))
    return tuple(found)


@dataclass(frozen=True)
class Extents:
    """How often loops run and how far tiles reach, at some sizes and blocks."""

    sizes: Mapping[Dim, int]
    blocks: Mapping[Dim, int]
    padded: tuple[Dim, ...] = ()

    def size(self, dim: Dim) -> int:
        """The elements along ``dim``."""
        return self.sizes[size_class(dim)]

    def trips(self, dim: Dim) -> int:
        """How many blocks ``dim`` has."""
        return -(-self.size(dim) // self.blocks[dim])

    def lanes(self, dim: Dim) -> int:
        """What is loaded along ``dim``: with all lanes of its blocks if it is padded."""
        return self.trips(dim) * self.blocks[dim] if dim in self.padded else self.size(dim)

    def elements(self, access: Load | Issue | Store, loops: tuple[Dim, ...]) -> int:
        """Elements of all tiles of an access: a dim's blocks together are the whole dim."""
        count = self.size if isinstance(access, Store) else self.lanes
        sliced = access.view.sliced(accessed(access))
        return self.repeated(loops, sliced) * prod(map(count, dict.fromkeys(sliced)))

    def repeated(self, loops: Iterable[Dim], dims: Collection[Dim]) -> int:
        """How often ``loops`` come by what has ``dims``: those of its own give its other blocks."""
        return prod(self.trips(dim) for dim in loops if dim not in dims)


def _count(
    body: tuple[Stmt, ...], loops: tuple[Dim, ...], extents: Extents, moved: dict[str, Moved]
) -> None:
    for stmt in body:
        if isinstance(stmt, For):
            around = (d for d in loops if d != stmt.chunk)  # all chunks together are the whole dim
            _count(stmt.body, (*around, stmt.dim), extents, moved)
        elif isinstance(stmt, Load | Issue | Store):
            buffer = stmt.view.buffer
            elements = extents.elements(stmt, loops)
            tiles = prod(map(extents.trips, loops))
            moved[buffer.name] += (
                Moved(elements_stored=elements, tiles_stored=tiles)
                if isinstance(stmt, Store)
                else Moved(elements_loaded=elements, tiles_loaded=tiles)
            )
