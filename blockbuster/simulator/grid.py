"""The programs of a grid in the order in which processors take them."""

from __future__ import annotations

from collections.abc import Iterator

from blockbuster.emit.tile.extents import Extents
from blockbuster.emit.tile.grid_order import programs_in_order
from blockbuster.ir.types import Dim


def places(extents: Extents) -> Iterator[dict[Dim, int]]:
    """The number of each program's block of each dim of the grid."""
    grid = extents.nest.grid
    counts = tuple(map(extents.trips, grid))
    for numbers in programs_in_order(extents.nest, counts).tolist():
        yield dict(zip(grid, numbers, strict=True))
