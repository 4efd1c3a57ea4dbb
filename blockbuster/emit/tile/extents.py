"""How often each statement of a nest runs and how large its tiles are, for given sizes and blocks.

Every count of a tile program is a sum over the statements that ``Extents`` walks; SymbolicExtents
(costs/symbols.py) walks the same ones with expressions in place of numbers.

A loop over a span has as many iterations as its bounds allow, for each combination of iterations
around it, if the bounds follow from indices and sizes. If they depend on data, the loop counts with
all its blocks.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import TypeAlias

import numpy as np

from blockbuster.emit.tile.each_nest import Same
from blockbuster.emit.tile.grid_order import programs_in_order
from blockbuster.emit.tile.known_bounds import KnownBounds, Numbers
from blockbuster.emit.tile.program import For, Nest, Stmt, TileProgram, statements
from blockbuster.emit.tile.spanned import Walked, summed, summed_outside
from blockbuster.emit.tile.trips import blocks_in, bound_blocks, pieces_in
from blockbuster.ir.types import Dim, size_class

Loops: TypeAlias = tuple[Walked, ...]
"""The loops around a statement, outermost first."""


@dataclass(frozen=True)
class Extents:
    """``sizes``: by size class. ``blocks``: by dim."""

    nest: Nest
    sizes: Mapping[Dim, int]
    blocks: Mapping[Dim, int]

    @cached_property
    def _bounds(self) -> KnownBounds:
        return KnownBounds(self.nest, self.sizes, self.blocks)

    @property
    def grid(self) -> Loops:
        """The loops around all statements of the nest."""
        return tuple(map(Walked, self.nest.grid))

    def walk(self) -> Iterator[tuple[Stmt, Loops]]:
        """Every statement of the nest, in the order of its text, with the loops around it."""
        return self._walk(self.nest.body, self.grid)

    def _walk(self, body: tuple[Stmt, ...], loops: Loops) -> Iterator[tuple[Stmt, Loops]]:
        for stmt in body:
            yield stmt, loops
            if isinstance(stmt, For):
                yield from self._walk(stmt.body, self.inside(stmt, loops))

    def inside(self, loop: For, loops: Loops) -> Loops:
        """The loops around the body of ``loop``, which stands in ``loops``.

        All chunks of it together are the whole loop.
        """
        span = self._bounds.of(loop) if loop.span is not None else None
        if loop.within:
            return loops  # the block of pieces is that of the dim around it
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

        None if all programs run it equally often: no span depends on the program, and all chunks
        of a loop have as many blocks. Each chunk is taken to have its share of what spans leave.
        """
        around = tuple(loop for loop in self.grid if loop in loops)
        inner = loops[len(around) :]
        if loops[: len(around)] != around:
            return None
        tied = _tied(inner)
        if not tied and around == self.grid:
            return None
        free = prod(self.trips(loop.dim) for loop in inner if loop.dim not in tied)
        spans = [loop for loop in inner if loop.dim in tied]
        counts = summed_outside(spans, self._one_each)
        grid = self.nest.grid
        shares = [self._shares(dim) if Walked(dim) not in around else None for dim in grid]
        if not counts.dims and all(s is None or s.min() == s.max() for s in shares):
            return None
        shape = [self.trips(dim) for dim in grid]
        each = np.broadcast_to(counts.over(grid), shape) * free
        for axis, share in enumerate(shares):
            if share is not None:
                each = each * share.reshape([-1 if at == axis else 1 for at in range(len(grid))])
        return np.asarray(each[tuple(programs_in_order(self.nest, shape).T)])

    def _shares(self, chunk: Dim) -> Numbers:
        """The part of the blocks of a loop that each of its chunks has: the last may have fewer."""
        loops = (s for s in statements(self.nest.body) if isinstance(s, For) and s.chunk == chunk)
        blocks, count = max((self.trips(loop.dim) for loop in loops), default=1), self.trips(chunk)
        each = -(-blocks // count)
        return np.clip(blocks - each * np.arange(count), 0, each) / blocks

    def _one_each(self, dim: Dim) -> Numbers:
        return np.ones_like(self._bounds.firsts(dim))

    def elements(self, dims: Collection[Dim], loops: Loops) -> int:
        """The elements of all tiles over ``dims`` inside ``loops``; ragged blocks have fewer."""
        key = frozenset(dims), Same(loops)
        if key not in self._counted:
            self._counted[key] = self._elements(dims, loops)
        return self._counted[key]

    @cached_property
    def _counted(self) -> dict[tuple[frozenset[Dim], Same[Loops]], int]:
        """The elements that were counted before: accesses in one loop often have the same dims."""
        return {}

    def told_apart(self, dims: Collection[Dim], loops: Loops) -> Loops:
        """``loops`` without those whose blocks hold the pieces that ``dims`` count."""
        joined = {of for pieces, of, _ in pieces_in(self.nest) if pieces in dims}
        return tuple(loop for loop in loops if loop.dim not in joined) if joined else loops

    def _elements(self, dims: Collection[Dim], loops: Loops) -> int:
        tied, loops = _tied(loops), self.told_apart(dims, loops)
        free = [loop.dim for loop in loops if loop.dim not in tied]
        repeated = prod(self.trips(dim) for dim in free if dim not in dims)
        reach = prod(self.size(dim) for dim in dict.fromkeys(dims) if dim not in tied)
        if not tied:
            return repeated * reach

        def weights(dim: Dim) -> Numbers:
            return self._bounds.real(dim) if dim in dims else self._one_each(dim)

        return repeated * reach * summed([loop for loop in loops if loop.dim in tied], weights)


def _tied(loops: Loops) -> set[Dim]:
    """The dims of the loops over spans, and of those that their bounds depend on."""
    tied = {loop.dim for loop in loops if loop.span}
    tied.update(dim for loop in loops for bound in loop.span or () for dim in bound.dims)
    return tied


def extents_of(
    program: TileProgram, sizes: Mapping[Dim, int], block_sizes: Mapping[Dim, int] | None = None
) -> tuple[Extents, ...]:
    """The extents of each nest of ``program``.

    ``sizes`` gives every size class, ``block_sizes`` what is not one block (1 for list-only dims)
    and what nests do not cut themselves.
    """
    blocks = bound_blocks(program, sizes, block_sizes)
    return tuple(Extents(nest, sizes, blocks_in(nest, blocks)) for nest in program.nests)
