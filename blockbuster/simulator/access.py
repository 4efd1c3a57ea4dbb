"""The blocks of an array that a load or store touches, and their bytes, at any place.

A *place* is the number of the current block of each dim that the grid or a loop walks.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from math import prod
from typing import TypeAlias

from blockbuster.emit.tile.dataflow import accessed
from blockbuster.emit.tile.dtypes import MEMORY
from blockbuster.emit.tile.extents import Extents
from blockbuster.emit.tile.program import Issue, Load, Store, View
from blockbuster.emit.tile.tiling import Tiling
from blockbuster.ir.types import Dim
from blockbuster.ir.views import AxisView, Strided, dims_along, runs_along
from blockbuster.simulator.cache import Block

Place: TypeAlias = Mapping[Dim, int]
Name: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Access:
    """One load or store.

    ``array``: its name. ``cut``: equal for accesses that cut it into blocks alike. ``dims``: whose
    numbers say which block it is, in the order of the array's axes. ``fixed``: bytes for each
    element along the dims of ``before``, which says how many elements lie before each block.
    """

    array: str
    cut: int
    dims: tuple[Dim, ...]
    fixed: int
    before: Mapping[Dim, tuple[int, ...]] = field(repr=False)

    @property
    def most(self) -> int:
        """Bytes of a full block."""
        return self.fixed * prod(before[1] for before in self.before.values())

    def along(self, dim: Dim, place: Place) -> Row:
        """The blocks along ``dim`` from ``place``, where a loop over it stands."""
        fixed = self.fixed
        for other, before in self.before.items():
            if other != dim:
                fixed *= before[place[other] + 1] - before[place[other]]
        if dim not in self.dims:
            names = self._names(self.dims, place)
            return Row(self.array, fixed, None, names, None)
        at = self.dims.index(dim)
        first = self._names(self.dims[:at], place)
        last = tuple(place[d] for d in self.dims[at + 1 :])
        return Row(self.array, fixed, self.before.get(dim), first, last)

    def _names(self, dims: tuple[Dim, ...], place: Place) -> Name:
        return (self.cut, *(place[dim] for dim in dims))


@dataclass(frozen=True, eq=False)
class Row:
    """The accesses of the iterations of one loop, of one program.

    ``fixed``: bytes of an element along the loop's dim, ``before``: how many lie before each block
    (None: one in each). ``first``, ``last``: what comes before and behind the number of a block in
    its name; ``last`` is None if all iterations touch the same block. ``met``: for each block that
    the program has met, which part of it had to come from memory; it grows.
    """

    array: str
    fixed: int
    before: tuple[int, ...] | None
    first: Name
    last: Name | None
    met: dict[int, float] = field(default_factory=dict)

    def bytes(self, blocks: range) -> int:
        """The bytes that iterations over ``blocks`` move."""
        if self.before is None:
            return self.fixed * len(blocks)
        return self.fixed * (self.before[blocks.stop] - self.before[blocks.start])

    def block(self, number: int) -> Block:
        """The block, or the group of blocks, with this number."""
        if self.last is None:
            return Block(self.array, self.first)
        return Block(self.array, (*self.first, number, *self.last))


def access(
    stmt: Load | Issue | Store,
    walked: frozenset[Dim],
    extents: Extents,
    tiling: Tiling,
    cuts: dict[Hashable, int],
) -> Access:
    """The blocks that ``stmt`` accesses inside the grid and loops over the dims ``walked``.

    ``cuts``: numbers of the ways in which accesses of the nest cut arrays; it grows.
    """
    view, tile = stmt.view, accessed(stmt)
    lanes = dict.fromkeys(view.sliced(tile))
    whole = prod(_along(axis, [d for d in lanes if d not in walked], extents) for axis in view.dims)
    before = {dim: _before(extents, dim) for dim in lanes if dim in walked}
    dims = tuple(dict.fromkeys(dim for dim in view.runs if dim in walked))
    width = MEMORY[view.buffer.dtype].bytes
    cut = cuts.setdefault(_cut(view, walked, tiling), len(cuts))
    return Access(view.buffer.name, cut, dims, width * whole, before)


def _along(axis: AxisView, lanes: list[Dim], extents: Extents) -> int:
    """The elements along an axis that lanes read: windows that overlap read some of them again."""
    found = prod(extents.size(run.own) for run in runs_along(axis) if run.dim in lanes)
    return min(found, extents.size(axis.of)) if isinstance(axis, Strided) else found


def _before(extents: Extents, dim: Dim) -> tuple[int, ...]:
    firsts = range(0, extents.size(dim), extents.blocks[dim])
    return (*firsts, extents.size(dim))


def _cut(view: View, walked: frozenset[Dim], tiling: Tiling) -> Hashable:
    """The array's name, and for each axis how it is cut: lanes of blocks, 0 for all of it."""

    def along(axis: AxisView) -> Hashable:
        lanes = tuple(tiling.block(d) if d in walked else 0 for d in dims_along(axis))
        return (lanes, axis) if isinstance(axis, Strided) else lanes

    return (view.buffer.name, tuple(map(along, view.dims)))
