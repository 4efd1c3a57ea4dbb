"""Snapshots with dims in one block: candidates beside the snapshots, where these leave edges.

Where the rules stop at a list that all of a loop must make before the next begins, one block of the
loop's dim lets them go on (``WholeDim``): a residual and its norm become one kernel that stores
both and reads neither back. Rows that loops read again, wider than those that a schedule gives one
block by default, are read once. Such a program is a candidate for sizes that fit a tile only;
whether it is cheaper is for choice.py.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from blockbuster.emit.tile.tiling import power_of_two
from blockbuster.ir.graph import Graph, Read
from blockbuster.ir.ops import Functional, Map
from blockbuster.ir.types import Dim, size_class
from blockbuster.ir.views import dims_along
from blockbuster.rules import RULES, Derivation, WholeDim, fuse
from blockbuster.rules.explain import dims_in_the_way
from blockbuster.rules.one_block import with_one_block
from blockbuster.selection.default_tiles import LINE

LANES = 16384
"""The most elements of a tile along all whole dims: 128 for each thread of four warps, 16 of 32."""

BESIDE_DOTS = 512
"""The same of a dim that dots have: they take 16 rows at least, and 64 elements to a thread of four
warps are as many as leave room for others."""

Measure = tuple[int, int]

MOST = 3
"""Dims that are tried: what is fused already is fused on with each of them in one block."""


@dataclass(frozen=True)
class Whole:
    """Snapshot ``number``, counted from 1, of ``derivation``, in which ``dims`` are whole."""

    dims: tuple[Dim, ...]
    number: int
    derivation: Derivation

    @property
    def graph(self) -> Graph:
        """The program."""
        return self.derivation.graph_after(self.derivation.snapshots_after[self.number - 1])

    @property
    def name(self) -> str:
        """What it is called among the snapshots."""
        dims = " and ".join(self.dims)
        each = "each " if len(self.dims) > 1 else ""
        several = len(self.derivation.snapshots_after) > 1
        return f"{f'snapshot {self.number} ' * several}with {dims} {each}in one block"


class WholeDims:
    """The snapshots with whole dims of a program that is fused already.

    They are numbered from 0, whatever the order of sizes in which they are asked for.
    """

    def __init__(self, derivation: Derivation) -> None:
        self._plain = derivation
        final = derivation.final
        self._measure = measure(final)
        self._stored = _can_be_whole(derivation.start, dims_in_the_way(final))
        rows = (dim for dim in _read_again(final) if dim not in self._stored)
        again = _can_be_whole(derivation.start, tuple(rows))
        alone = ((dim,) for dim in (*self._stored, *again))
        self._sets: list[tuple[Dim, ...]] = [*alone, *combinations(self._stored, 2)]
        self._along = _along_memory(derivation.start)
        self._dots = _dims_of_dots(derivation.start)
        self._left: dict[tuple[Dim, ...], Measure] = {}
        self._found: dict[tuple[Dim, ...], tuple[Whole, ...]] = {}

    def for_sizes(self, sizes: Mapping[Dim, int]) -> dict[int, Whole]:
        """The snapshots with least left to fuse whose whole dims fit a tile, by their numbers.

        Two dims are whole only if one does not make all edges go. ``sizes`` are by size class.
        """
        dims = self._best([dims for dims in self._sets if len(dims) == 1], sizes)
        if dims and self._left[dims][0]:
            pairs = [pair for pair in self._sets if len(pair) == 2 and dims[0] in pair]
            more = self._best(pairs, sizes)
            dims = more if more and self._left[more] < self._left[dims] else dims
        if not dims:
            return {}
        at, each = self._sets.index(dims), len(self._sets)
        return {(one.number - 1) * each + at: one for one in self._of(dims)}

    def _best(self, sets: Sequence[tuple[Dim, ...]], sizes: Mapping[Dim, int]) -> tuple[Dim, ...]:
        """Of the first sets that fit, the one that leaves least.

        Of equals, one whose dims lie along memory, then the smallest.
        """
        tried = [dims for dims in sets if self._fit(dims, sizes)][:MOST]
        for dims in tried:
            if dims not in self._left:
                self._left[dims] = self._left_with(dims)
        fewer = [dims for dims in tried if self._left[dims] < self._measure]

        def rank(dims: tuple[Dim, ...]) -> tuple[Measure, bool, int]:
            across = any(dim not in self._along for dim in dims)
            return self._left[dims], across, lanes(dims, sizes)

        return min(fewer, key=rank, default=())

    def _fit(self, dims: tuple[Dim, ...], sizes: Mapping[Dim, int]) -> bool:
        """Whether a tile may have all of ``dims``, and no schedule would give them one block."""
        most = BESIDE_DOTS if any(dim in self._dots for dim in dims) else LANES
        least = 0 if any(dim in self._stored for dim in dims) else LINE
        return all(sizes[dim] > 0 for dim in dims) and least < lanes(dims, sizes) <= most

    def _left_with(self, dims: tuple[Dim, ...]) -> Measure:
        """What the rules leave with ``dims`` in one block, of what is fused already."""
        graph = self._plain.final
        for dim in dims:
            graph = with_one_block(graph, dim)
        return measure(fuse(graph, RULES).final)

    def _of(self, dims: tuple[Dim, ...]) -> tuple[Whole, ...]:
        """The snapshots with ``dims`` whole that leave less than the program without."""
        if dims not in self._found:
            derivation = fuse(self._plain.start, whole=dims)
            self._found[dims] = tuple(
                Whole(dims, number, derivation)
                for number, graph in enumerate(derivation.snapshots, start=1)
                if measure(graph) < self._measure
            )
        return self._found[dims]


def measure(graph: Graph) -> Measure:
    """What one block of a dim makes less: buffered edges, and loops that read a row once more."""
    return len(graph.buffered_edges()), sum(_read_again(graph).values())


def _read_again(graph: Graph) -> dict[Dim, int]:
    """How often an iteration has another loop over the same size class, the most often first."""
    found: dict[Dim, int] = {}
    for path, level in graph.walk():
        loops = [size_class(op.dim) for _, op in level.of_type(Map)] if path else []
        for dim in dict.fromkeys(loops):
            found[dim] = found.get(dim, 0) + loops.count(dim) - 1
    return {dim: count for dim, count in sorted(found.items(), key=lambda e: -e[1]) if count}


def _can_be_whole(graph: Graph, dims: Sequence[Dim]) -> tuple[Dim, ...]:
    sites = {dim for match in WholeDim().matches(graph) for dim in match.nodes}
    return tuple(dim for dim in dims if dim in sites)


def _along_memory(graph: Graph) -> frozenset[Dim]:
    """The size classes of the last axes of arrays: their elements lie side by side."""
    views = [given.view for given in graph.inputs if isinstance(given.view, Read)]
    last = (dim for view in views if view.axes for dim in dims_along(view.axes[-1]))
    return frozenset(map(size_class, last))


def lanes(dims: Sequence[Dim], sizes: Mapping[Dim, int]) -> int:
    """The elements of a block of all ``dims``."""
    return math.prod(power_of_two(sizes[dim]) for dim in dims)


def _dims_of_dots(graph: Graph) -> frozenset[Dim]:
    """The size classes that dots of a program have."""
    return frozenset(
        size_class(dim)
        for _, level in graph.walk()
        for node in level.nodes
        if node.op == Functional("dot")
        for value in node.operands
        for dim in level.type_of(value).axes
    )
