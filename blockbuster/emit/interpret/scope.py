"""The loop indices around a statement of a running tile program, and the places of its accesses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from blockbuster.emit.interpret.memory import Index, Padded, Path
from blockbuster.emit.tile.program import Tile, View
from blockbuster.interp.layout import Array
from blockbuster.interp.semantics import Shape
from blockbuster.ir.types import Dim, size_class
from blockbuster.ir.views import AxisView, Strided


@dataclass(frozen=True)
class Scope:
    """The loops around a statement.

    ``sizes``: by size class. ``blocks``: by dim. ``at``: the first element of the current block of
    each dim that a loop or the grid runs over. ``path``: the parallel iterations around.
    ``padded``: tiles have all lanes of their blocks. ``abreast``: the first elements of the blocks
    of each dim whose iterations run side by side, along leading axes of all tiles, in this order.
    """

    sizes: Mapping[Dim, int]
    blocks: Mapping[Dim, int]
    padded: bool = False
    at: Mapping[Dim, int] | None = None
    path: Path = ()
    abreast: Mapping[Dim, Array] | None = None

    def inside(self, dim: Dim, start: int, path: Path) -> Scope:
        """The scope of an iteration over ``dim`` that begins at ``start``."""
        at = {**(self.at or {}), dim: start}
        return Scope(self.sizes, self.blocks, self.padded, at, path, self.abreast)

    def beside(self, dim: Dim, starts: Sequence[int], run: int) -> Scope:
        """The scope of all iterations over ``dim``, whose blocks have one element, side by side."""
        abreast = {**(self.abreast or {}), dim: np.array(starts)}
        return replace(self, abreast=abreast, path=(*self.path, (run, range(len(starts)), dim)))

    @cached_property
    def stack(self) -> Shape:
        """The leading axes of tiles: how many iterations run side by side."""
        return tuple(map(len, (self.abreast or {}).values()))

    def size(self, dim: Dim) -> int:
        """The number of elements of ``dim``."""
        return self.sizes[size_class(dim)]

    def start(self, dim: Dim) -> int:
        """The first element of the current block of ``dim``."""
        return self.at[dim] if self.at and dim in self.at else 0

    def real(self, dim: Dim) -> int:
        """How many elements of ``dim`` the current block has."""
        if self.abreast and dim in self.abreast:
            return 1
        size = self.sizes[size_class(dim)]
        if not self.at or dim not in self.at:
            return size
        return min(self.blocks[dim], size - self.at[dim])

    def extents(self, tile: Tile) -> tuple[int, ...]:
        """The shape of a tile here."""
        return tuple(
            self.blocks[dim] if self.padded or dim in tile.per_lane else self.real(dim)
            for dim in tile.axes
        )

    def steps(self, dim: Dim, chunk: Dim | None = None, within: tuple[Dim, ...] = ()) -> range:
        """The first elements of the blocks of ``dim`` that a loop here runs over."""
        steps = range(0, self.size(dim), self.blocks[dim])
        for joined in within[:1]:
            number = self.start(joined) // self.blocks[joined]
            return steps[number : number + 1]
        if chunk is None:
            return steps
        each = -(-len(steps) // max(self.size(chunk), 1))
        number = self.start(chunk)
        return steps[number * each : (number + 1) * each]

    def place(self, view: View, tile: Tile) -> Index:
        """The positions of the real elements of a tile, an array or a number for each axis.

        They broadcast to the shape of the tile with its axes as they lie in the array.
        """
        order = view.sliced(tile)
        axes = zip(view.dims, view.buffer.axes, strict=True)
        return tuple(self._along(dim, axis.per_block, order) for dim, axis in axes)

    def _along(
        self, axis: AxisView, per_block: bool, order: tuple[Dim, ...]
    ) -> Array | int | Padded:
        if axis is None:
            return 0
        if isinstance(axis, Strided):
            total: Array | int = axis.start.value(self.sizes)
            for run in axis.runs:
                lane = self._lane(run.dim, order)
                lane = lane if run.share is None else run.share.of(lane, self.sizes)
                total = total + lane * run.step.value(self.sizes)
            return Padded(total) if axis.padded else total
        if per_block:
            return self._first(axis, order) // self.blocks[axis]
        return self._lane(axis, order)

    def _first(self, dim: Dim, order: tuple[Dim, ...]) -> Array | int:
        """The first element of the block of ``dim``: one number, or those of all iterations."""
        abreast = self.abreast or {}
        if dim not in abreast:
            return self.start(dim)
        shape = [1] * (len(abreast) + len(order))
        shape[[*abreast].index(dim)] = -1
        return abreast[dim].reshape(shape)

    def _lane(self, dim: Dim, order: tuple[Dim, ...]) -> Array | int:
        if dim not in order:
            return self._first(dim, order)
        shape = [-1 if other == dim else 1 for other in order]
        return (self.start(dim) + np.arange(self.real(dim))).reshape(shape)
