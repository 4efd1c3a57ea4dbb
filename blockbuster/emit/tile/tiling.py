"""How many lanes a kernel gives each dim, and which lanes may lie past the end of a dim."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from blockbuster.emit.tile.program import Tile
from blockbuster.ir.types import Dim, size_class


@dataclass(frozen=True)
class Tiling:
    """``blocks``: lanes per dim. ``sizes``: per size class, the sizes the blocks were chosen for.

    ``whole`` dims are one block; blocks of ``units`` (size classes) are one element, which is an
    index and no lane.
    """

    sizes: Mapping[Dim, int]
    blocks: Mapping[Dim, int]
    whole: tuple[Dim, ...]
    units: tuple[Dim, ...]

    def is_unit(self, dim: Dim) -> bool:
        """True if iterations over ``dim`` run over single elements."""
        return size_class(dim) in self.units

    def lanes(self, tile: Tile) -> tuple[Dim, ...]:
        """The axes along which ``tile`` has lanes."""
        return tuple(d for d in tile.axes if not self.is_unit(d))

    def ragged(self, dim: Dim) -> bool:
        """True if a block of ``dim`` may hold lanes past its end: accesses need masks."""
        size, block = self.sizes[size_class(dim)], self.blocks[dim]
        return size != block if dim in self.whole else size % block != 0


def power_of_two(size: int, least: int = 1) -> int:
    """The smallest power of two that is at least ``size`` and ``least``.

    >>> power_of_two(37), power_of_two(3, least=16)
    (64, 16)
    """
    return 1 << max(max(size, least) - 1, 0).bit_length()
