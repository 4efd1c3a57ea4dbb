"""Observers of a run of a tile program: they are told of each load, store, operator and fold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from blockbuster.emit.tile.program import Fold, Let, View
from blockbuster.interp.layout import Array
from blockbuster.ir.types import Dim

Real = Callable[[Dim], int]
"""How many lanes of the current block of a dim are elements, and do not lie past its end."""


class TileObserver:
    """Watches a run; this one ignores everything it sees.

    ``stacks``: it can be told of many iterations at once, whose tiles are stacked along leading
    axes.
    """

    stacks: ClassVar[bool] = False

    def load(self, view: View, elements: Array) -> None:
        """Elements are read from global memory into a tile."""

    def store(self, view: View, elements: Array) -> None:
        """A tile, or what of it lies inside the array, is written to global memory."""

    def let(self, stmt: Let, args: Sequence[Array], made: Array, real: Real) -> None:
        """An operator is applied to tiles."""

    def fold(self, stmt: Fold, values: Sequence[Array], real: Real) -> None:
        """Values are folded into an accumulator, and into its members in order."""
