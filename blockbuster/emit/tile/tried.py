"""A program that is tried before another: it gives the same, in less time, for small numbers."""

from __future__ import annotations

from dataclasses import dataclass

from blockbuster.emit.tile.program import Tile, TileProgram


@dataclass(frozen=True)
class Tried:
    """``program`` is right where the squares of each of its tiles ``small`` add up to less than
    ``limit``: then no number in them is large, infinite or NaN.
    """

    program: TileProgram
    small: frozenset[Tile]
    limit: int
