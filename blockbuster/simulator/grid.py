"""The programs of a grid in the order in which processors take them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from blockbuster.emit.tile.extents import Extents
from blockbuster.ir.types import Dim


def places(extents: Extents) -> Iterator[dict[Dim, int]]:
    """The number of each program's block of each dim of the grid; the last dim runs fastest."""
    nest = extents.nest
    counts = tuple(map(extents.trips, nest.grid))
    turned = [dim in nest.last_first for dim in nest.grid]
    for at in np.ndindex(*counts):
        yield {
            dim: count - 1 - number if last_first else number
            for dim, count, number, last_first in zip(nest.grid, counts, at, turned, strict=True)
        }
