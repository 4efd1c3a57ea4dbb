"""How many lanes a nest gives each dim, and which lanes may lie past the end of a dim."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import prod

from blockbuster.emit.tile.program import (
    Await,
    Guard,
    Iota,
    Load,
    Nest,
    Stmt,
    Store,
    Tile,
    TileProgram,
    statements,
)
from blockbuster.ir.types import Dim, size_class


@dataclass(frozen=True)
class Tiling:
    """``blocks``: lanes per dim; 1 for dims whose size class is among ``units``.

    ``whole`` dims are one block; blocks of ``units`` are one element, which is an index and no
    lane. ``uneven``: dims whose last block may have lanes past the end.
    """

    blocks: Mapping[Dim, int]
    units: tuple[Dim, ...]
    whole: tuple[Dim, ...] = ()
    uneven: tuple[Dim, ...] = ()

    def is_unit(self, dim: Dim) -> bool:
        """True if iterations over ``dim`` run over single elements."""
        return bool(self.units) and size_class(dim) in self.units

    def lanes(self, tile: Tile) -> tuple[Dim, ...]:
        """The axes along which ``tile`` has lanes."""
        return blocked(tile.axes, self.units)

    def block(self, dim: Dim) -> int:
        """How many elements a block of ``dim`` has."""
        return 1 if self.units and size_class(dim) in self.units else self.blocks[dim]

    def elements(self, tile: Tile) -> int:
        """How many elements ``tile`` has in all its lanes."""
        return prod(map(self.blocks.__getitem__, blocked(tile.axes, self.units)))

    def ragged(self, dim: Dim) -> bool:
        """True if a block of ``dim`` may hold lanes past its end: accesses need masks."""
        return dim in self.uneven


@lru_cache(maxsize=4096)  # asked of the same few axes all the time
def blocked(axes: tuple[Dim, ...], units: tuple[Dim, ...]) -> tuple[Dim, ...]:
    """The axes of whose dims a block has more than one element."""
    return tuple(dim for dim in axes if size_class(dim) not in units)


def tiling_of(program: TileProgram, nest: Nest) -> Tiling:
    """The cuts of dims in a nest of ``program``."""
    return tiling_in(nest, program.units)


def tiling_in(nest: Nest, units: tuple[Dim, ...]) -> Tiling:
    """The same, of a program with these ``units``."""
    blocks, whole, ragged = dict[Dim, int](), list[Dim](), list[Dim]()
    for block in nest.blocks:
        blocks[block.dim] = block.lanes
        if block.whole:
            whole.append(block.dim)
        if block.ragged:
            ragged.append(block.dim)
    return Tiling(blocks, units, tuple(whole), tuple(ragged))


def ragged_dims(nest: Nest) -> tuple[Dim, ...]:
    """The dims whose last blocks in a nest may have lanes past the end."""
    return tuple([block.dim for block in nest.blocks if block.ragged])


def fitted(
    sizes: Mapping[Dim, int],
    blocks: Mapping[Dim, int],
    whole: tuple[Dim, ...],
    units: tuple[Dim, ...],
) -> Tiling:
    """The tiling with these blocks, for dims of these sizes (by size class)."""
    uneven = (
        dim
        for dim, lanes in blocks.items()
        if size_class(dim) not in units and is_ragged(sizes[size_class(dim)], lanes, dim in whole)
    )
    return Tiling(blocks, units, whole, tuple(uneven))


def addressed_dims(body: tuple[Stmt, ...], tiling: Tiling) -> tuple[Dim, ...]:
    """The dims along whose lanes statements of ``body`` address memory, guard or count."""
    found: dict[Dim, None] = {}
    for stmt in statements(body):
        match stmt:
            case Load(tile) | Await(tile) | Iota(tile) | Store(_, tile):
                found.update(dict.fromkeys(tiling.lanes(tile)))
            case Guard(_, _, dim, _) if not tiling.is_unit(dim):
                found.setdefault(dim)
    return tuple(found)


def is_ragged(size: int, lanes: int, whole: bool) -> bool:
    """True if blocks of so many lanes do not fill a dim of this size."""
    return size != lanes if whole else size % lanes != 0


def power_of_two(size: int, least: int = 1) -> int:
    """The smallest power of two that is at least ``size`` and ``least``.

    >>> power_of_two(37), power_of_two(3, least=16)
    (64, 16)
    """
    return 1 << max(max(size, least) - 1, 0).bit_length()
