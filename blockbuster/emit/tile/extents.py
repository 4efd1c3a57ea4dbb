"""How often each statement of a nest runs and how large its tiles are, for given sizes and blocks.

A loop over a span has as many iterations as its bounds allow, for each combination of iterations
around it, if the bounds follow from indices and sizes. If they depend on data, the loop counts with
all its blocks.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import TypeAlias

import numpy as np

from blockbuster.emit.tile.each_nest import Same
from blockbuster.emit.tile.grid_order import programs_in_order
from blockbuster.emit.tile.known_bounds import KnownBounds, Numbers
from blockbuster.emit.tile.program import For, Nest
from blockbuster.emit.tile.spanned import Walked, summed, summed_outside
from blockbuster.ir.types import Dim, size_class

Loops: TypeAlias = tuple[Walked, ...]
"""The loops around a statement, outermost first."""


@dataclass(frozen=True)
class Extents:
    """``sizes``: by size class. ``blocks``: by dim.

    Lanes past the end of ``padded`` dims may be counted, too.
    """

    nest: Nest
    sizes: Mapping[Dim, int]
    blocks: Mapping[Dim, int]
    padded: tuple[Dim, ...] = ()

    @cached_property
    def _bounds(self) -> KnownBounds:
        return KnownBounds(self.nest, self.sizes, self.blocks)

    @property
    def grid(self) -> Loops:
        """The loops around all statements of the nest."""
        return tuple(map(Walked, self.nest.grid))

    def inside(self, loop: For, loops: Loops) -> Loops:
        """The loops around the body of ``loop``, which stands in ``loops``.

        All chunks of it together are the whole loop.
        """
        span = self._bounds.of(loop) if loop.span is not None else None
        return (*(other for other in loops if other.dim != loop.chunk), Walked(loop.dim, span))

    def size(self, dim: Dim) -> int:
        """The elements along ``dim``."""
        return self.sizes[size_class(dim)]

    def trips(self, dim: Dim) -> int:
        """How many blocks ``dim`` has."""
        return -(-self.size(dim) // self.blocks[dim])

    def tiles(self, loops: Loops) -> int:
        """How often a statement inside ``loops`` runs."""
        return self.elements((), loops)

    def tiles_of_programs(self, loops: Loops) -> Numbers | None:
        """How often such a statement runs in each program, in the order of the grid.

        None if no span depends on the program: then all programs run it equally often.
        """
        inner = loops[len(self.nest.grid) :]
        if loops[: len(self.nest.grid)] != self.grid or not any(loop.span for loop in inner):
            return None
        counts = summed_outside(inner, lambda dim: np.ones(self.trips(dim), int))
        if not counts.dims:
            return None
        shape = [self.trips(dim) for dim in self.nest.grid]
        each = np.broadcast_to(counts.over(self.nest.grid), shape)
        return np.asarray(each[tuple(programs_in_order(self.nest, shape).T)])

    def elements(self, dims: Collection[Dim], loops: Loops, *, padded: bool = False) -> int:
        """The elements of all tiles over ``dims`` inside ``loops``: blocks together are the whole.

        ``padded``: with all lanes of the blocks of padded dims.
        """
        key = frozenset(dims), Same(loops), padded
        if key not in self._counted:
            self._counted[key] = self._elements(dims, loops, padded=padded)
        return self._counted[key]

    @cached_property
    def _counted(self) -> dict[tuple[frozenset[Dim], Same[Loops], bool], int]:
        """The elements that were counted before: accesses in one loop often have the same dims."""
        return {}

    def _elements(self, dims: Collection[Dim], loops: Loops, *, padded: bool) -> int:
        tied = {loop.dim for loop in loops if loop.span}
        tied.update(dim for loop in loops for bound in loop.span or () for dim in bound.dims)
        free = [loop.dim for loop in loops if loop.dim not in tied]
        repeated = prod(self.trips(dim) for dim in free if dim not in dims)
        reach = prod(self._reach(dim, padded) for dim in dict.fromkeys(dims) if dim not in tied)
        if not tied:
            return repeated * reach

        def weights(dim: Dim) -> Numbers:
            if dim not in dims:
                return np.ones(self.trips(dim), int)
            lanes = np.full(self.trips(dim), self.blocks[dim])
            return lanes if padded and dim in self.padded else self._bounds.real(dim)

        return repeated * reach * summed([loop for loop in loops if loop.dim in tied], weights)

    def _reach(self, dim: Dim, padded: bool) -> int:
        past = padded and dim in self.padded
        return self.trips(dim) * self.blocks[dim] if past else self.size(dim)
