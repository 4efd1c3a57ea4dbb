"""Snapshots with dims in one block: candidates beside the snapshots, where these leave edges.

Where the rules stop at a list that all of a loop must make before the next begins, one block of the
loop's dim lets them go on (``WholeDim``): a residual and its norm become one kernel that stores
both and reads neither back. Such a program is a candidate for sizes that fit a tile only; whether
it is cheaper is for choice.py.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from blockbuster.emit.tile.tiling import power_of_two
from blockbuster.ir.graph import Graph
from blockbuster.ir.ops import Functional
from blockbuster.ir.types import Dim, size_class
from blockbuster.rules import RULES, Derivation, WholeDim, fuse
from blockbuster.rules.explain import dims_in_the_way
from blockbuster.rules.one_block import with_one_block

LANES = 16384
"""The most elements of a tile along all whole dims: 128 for each thread of four warps, 16 of 32."""

BESIDE_DOTS = 512
"""The same of a dim that dots have: they take 16 rows at least, and 64 elements to a thread of four
warps are as many as leave room for others."""

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
        edges = derivation.final.buffered_edges()
        self._edges = len(edges)
        dims = _can_be_whole(derivation.start, dims_in_the_way(derivation.final)) if edges else ()
        self._dots = _dims_of_dots(derivation.start)
        self._sets = [*((dim,) for dim in dims), *combinations(dims, 2)]
        self._left: dict[tuple[Dim, ...], int] = {}
        self._found: dict[tuple[Dim, ...], tuple[Whole, ...]] = {}

    def for_sizes(self, sizes: Mapping[Dim, int]) -> dict[int, Whole]:
        """The snapshots with the fewest edges whose whole dims fit a tile, by their numbers.

        Two dims are whole only if one does not make all edges go. ``sizes`` are by size class.
        """
        dims = self._best([dims for dims in self._sets if len(dims) == 1], sizes)
        if dims and self._left[dims]:
            pairs = [pair for pair in self._sets if len(pair) == 2 and dims[0] in pair]
            more = self._best(pairs, sizes)
            dims = more if more and self._left[more] < self._left[dims] else dims
        if not dims:
            return {}
        at, each = self._sets.index(dims), len(self._sets)
        return {(one.number - 1) * each + at: one for one in self._of(dims)}

    def _best(self, sets: Sequence[tuple[Dim, ...]], sizes: Mapping[Dim, int]) -> tuple[Dim, ...]:
        """Of the first sets that fit, the one that leaves fewest edges, the smallest of equals."""
        tried = [dims for dims in sets if self._fit(dims, sizes)][:MOST]
        for dims in tried:
            if dims not in self._left:
                self._left[dims] = self._edges_left(dims)
        fewer = [dims for dims in tried if self._left[dims] < self._edges]
        return min(fewer, key=lambda dims: (self._left[dims], lanes(dims, sizes)), default=())

    def _fit(self, dims: tuple[Dim, ...], sizes: Mapping[Dim, int]) -> bool:
        """Whether a tile may have all of ``dims``."""
        most = BESIDE_DOTS if any(dim in self._dots for dim in dims) else LANES
        return all(sizes[dim] > 0 for dim in dims) and lanes(dims, sizes) <= most

    def _edges_left(self, dims: tuple[Dim, ...]) -> int:
        """The edges that the rules leave with ``dims`` in one block, of what is fused already."""
        graph = self._plain.final
        for dim in dims:
            graph = with_one_block(graph, dim)
        return len(fuse(graph, RULES).final.buffered_edges())

    def _of(self, dims: tuple[Dim, ...]) -> tuple[Whole, ...]:
        """The snapshots with ``dims`` whole that leave fewer edges than the program without."""
        if dims not in self._found:
            derivation = fuse(self._plain.start, whole=dims)
            self._found[dims] = tuple(
                Whole(dims, number, derivation)
                for number, graph in enumerate(derivation.snapshots, start=1)
                if len(graph.buffered_edges()) < self._edges
            )
        return self._found[dims]


def _can_be_whole(graph: Graph, dims: Sequence[Dim]) -> tuple[Dim, ...]:
    sites = {dim for match in WholeDim().matches(graph) for dim in match.nodes}
    return tuple(dim for dim in dims if dim in sites)


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
