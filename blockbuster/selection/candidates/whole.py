"""Candidates beside the snapshots: programs with some dims in one block.

If the rules stop at a list that one loop must complete before the next begins, one block of the
loop's dim lets them go on (``WholeDim``): a residual and its norm become one kernel that stores
both and reads neither back. Rows that loops read again, wider than the default schedule puts in one
block, are read once. Where nothing is left to fuse, work may leave a loop that repeats it. Such a
program is a candidate only for sizes that fit a tile; choice.py decides whether it is cheaper.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from blockbuster.emit.schedule.block import LEAST
from blockbuster.emit.tile.tiling import power_of_two
from blockbuster.ir.graph import Graph, Read
from blockbuster.ir.list_only import list_only
from blockbuster.ir.ops import Functional, Map
from blockbuster.ir.types import Dim, Type, size_class
from blockbuster.ir.views import dims_along
from blockbuster.rules import RULES, Derivation, WholeDim, fuse
from blockbuster.rules.base import unheard
from blockbuster.rules.explain import dims_in_the_way
from blockbuster.rules.faults import all_sites
from blockbuster.rules.one_block import tied, with_one_block
from blockbuster.rules.whole_dim import fuse_with_dims
from blockbuster.selection.candidates.repeating import repeated_in, repeating
from blockbuster.selection.priors import PRIORS

Measure = tuple[int, int]


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
        """Its name among the snapshots."""
        dims = " and ".join(self.dims)
        each = "each " if len(self.dims) > 1 else ""
        several = len(self.derivation.snapshots_after) > 1
        return f"{f'snapshot {self.number} ' * several}with {dims} {each}in one block"


class WholeDims:
    """The snapshots with whole dims of a program that is fused already.

    A set of them is found dim by dim, whatever these are called: the one that leaves least, then
    others while edges go. They are numbered from 0, whatever the order of sizes in which they are
    asked for.
    """

    def __init__(self, derivation: Derivation) -> None:
        self._plain = derivation
        final = derivation.final
        self._measure = measure(final)
        self._repeated = tuple(repeated_in(final))
        self._sites = Sites(derivation.start)
        self._stored = self._sites.of(dims_in_the_way(final))
        again = self._sites.of(_read_again(final))
        self._rows = tuple(dict.fromkeys((*self._stored, *again)))
        self._all = tuple(dict.fromkeys((*self._rows, *self._sites.all)))
        self._along = self._sites.of(_along_memory(derivation.start))
        self._tiles = Tiles(final)
        self._left: dict[tuple[Dim, ...], Measure] = {}
        self._found: dict[tuple[Dim, ...], tuple[Whole, ...]] = {}

    def for_sizes(self, sizes: Mapping[Dim, int]) -> dict[int, Whole]:
        """The snapshots with least left to fuse whose whole dims fit a tile, by their numbers.

        Several dims are whole only if fewer do not make all edges go. ``sizes`` are by size class.
        """
        dims = self._best([(dim,) for dim in self._rows], sizes)
        while dims and self._left[dims][0] and len(dims) < PRIORS.most_whole_dims:
            more = self._best([self._with(dims, d) for d in self._stored if d not in dims], sizes)
            if not more or self._left[more] >= self._left[dims]:
                break
            dims = more
        found = self._numbered(dims) if dims else {}
        more = self._once(dims, sizes) if dims else self._out_of_long_loops(sizes)
        return found | self._numbered(more) if more else found

    def _numbered(self, dims: tuple[Dim, ...]) -> dict[int, Whole]:
        at = sum(1 << self._all.index(dim) for dim in dims)
        each = 1 << len(self._all)
        return {(one.number - 1) * each + at: one for one in self._of(dims)}

    def _once(self, dims: tuple[Dim, ...], sizes: Mapping[Dim, int]) -> tuple[Dim, ...]:
        """With the dims besides whose iterations repeat work, as far as they fit; () for none."""
        found = self._of(dims)
        again = self._sites.of(repeating(found[-1].graph)) if found else ()
        more = dims
        for dim in again:
            if dim not in more and self._fit(self._with(more, dim), sizes):
                more = self._with(more, dim)
        return more if more != dims else ()

    def _out_of_long_loops(self, sizes: Mapping[Dim, int]) -> tuple[Dim, ...]:
        """The dims of the loops between work and those that repeat it and are longer than a tile,
        as far as they fit; () for none.

        No schedule takes work out of such a loop: the keys' part of linear attention would be
        made for each block of queries.
        """
        dims: tuple[Dim, ...] = ()
        for loop, *between in self._repeated:
            more = tuple(sorted({*dims, *self._sites.of(between)}, key=self._all.index))
            is_long = not self._fits_tiles(self._sites.of((loop,)), sizes)
            if is_long and self._fits_tiles(more, sizes):
                dims = more
        return dims

    def _fits_tiles(self, dims: Sequence[Dim], sizes: Mapping[Dim, int]) -> bool:
        are_some = all(sizes[size_class(dim)] > 0 for dim in dims)
        return are_some and self._tiles.fit(self._sites.with_tied(dims), sizes)

    def _with(self, dims: tuple[Dim, ...], dim: Dim) -> tuple[Dim, ...]:
        return tuple(sorted((*dims, dim), key=self._all.index))

    def _best(self, sets: Sequence[tuple[Dim, ...]], sizes: Mapping[Dim, int]) -> tuple[Dim, ...]:
        """Of the first sets that fit, the one that leaves least.

        Of equals, one whose dims lie along memory, then the smallest.
        """
        tried = [dims for dims in sets if self._fit(dims, sizes)][: PRIORS.whole_dims_tried]
        for dims in tried:
            if dims not in self._left:
                self._left[dims] = self._left_with(dims)
        fewer = [dims for dims in tried if self._left[dims] < self._measure]

        def rank(dims: tuple[Dim, ...]) -> tuple[Measure, bool, int]:
            across = any(dim not in self._along for dim in dims)
            return self._left[dims], across, self._tiles.lanes(self._sites.with_tied(dims), sizes)

        return min(fewer, key=rank, default=())

    def _fit(self, dims: tuple[Dim, ...], sizes: Mapping[Dim, int]) -> bool:
        """Whether tiles may have all of ``dims``, and no schedule would give them one block."""
        if any(sizes[size_class(dim)] <= 0 for dim in dims):
            return False
        together = self._sites.with_tied(dims)
        least = 0 if any(dim in self._stored for dim in dims) else PRIORS.longest_line
        return self._tiles.fit(together, sizes) and least < self._tiles.lanes(together, sizes)

    def _left_with(self, dims: tuple[Dim, ...]) -> Measure:
        """What the rules leave with ``dims`` in one block, of what is fused already."""
        graph = with_one_block(self._plain.final, self._sites.with_tied(dims))
        return measure(fuse(graph, RULES).final)

    def _of(self, dims: tuple[Dim, ...]) -> tuple[Whole, ...]:
        """The snapshots with ``dims`` whole that leave less than the program without; if none do,
        those that leave as much and repeat less.
        """
        if dims not in self._found:
            derivation = fuse_with_dims(self._plain.start, RULES, dims)
            made = [Whole(dims, at, derivation) for at, _ in enumerate(derivation.snapshots, 1)]
            left = [(one, measure(one.graph)) for one in made]
            alike = [one for one, own in left if own == self._measure]
            self._found[dims] = tuple(
                [one for one, own in left if own < self._measure]
                or [
                    one for one in alike if len(tuple(repeated_in(one.graph))) < len(self._repeated)
                ]
            )
        return self._found[dims]


class Sites:
    """The dims of a program that can be whole, each for those that are tied to it."""

    def __init__(self, graph: Graph) -> None:
        matches = all_sites(WholeDim(), graph, unheard)
        found = [dim for match in matches for dim in match.nodes]
        self._tied = {dim: tied(graph, (dim,)) for dim in found}
        self.all = tuple(found)
        self._first = {own: dim for dim, dims in self._tied.items() for own in dims}

    def of(self, dims: Iterable[Dim]) -> tuple[Dim, ...]:
        """The sites that ``dims`` belong to."""
        return tuple(dict.fromkeys(self._first[dim] for dim in dims if dim in self._first))

    def with_tied(self, dims: Iterable[Dim]) -> frozenset[Dim]:
        """All dims of these sites."""
        return frozenset[Dim]().union(*(self._tied[dim] for dim in dims))


class Tiles:
    """The items of a program, which become its tiles: which dims stand in one."""

    def __init__(self, graph: Graph) -> None:
        single, levels = list_only(graph), [level for _, level in graph.walk()]
        types = (t for level in levels for types in _types_at(level) for t in types)
        axes = dict.fromkeys(type.axes for type in types)
        self._axes = [[d for d in own if size_class(d) not in single] for own in axes]
        self._dots = _dims_of_dots(levels)

    def lanes(self, dims: frozenset[Dim], sizes: Mapping[Dim, int]) -> int:
        """The most elements that a tile has along ``dims`` where they are whole."""
        return max((_lanes(own, dims, sizes) for own in self._axes), default=0)

    def fit(self, dims: frozenset[Dim], sizes: Mapping[Dim, int]) -> bool:
        """Whether every tile has room for its whole dims: of those of dots, beside 16 rows."""
        for own in self._axes:
            whole = [dim for dim in own if dim in dims]
            lanes = _lanes(own, dims, sizes)
            if any(dim in self._dots for dim in whole):
                others = LEAST ** (len(own) - len(whole))
                if lanes * others > PRIORS.whole_elements_beside_dots * LEAST:
                    return False
            elif lanes > PRIORS.whole_elements:
                return False
        return True


def _types_at(level: Graph) -> Iterator[tuple[Type, ...]]:
    yield tuple(given.type for given in level.inputs)
    yield from (node.types for node in level.nodes)


def _lanes(axes: Sequence[Dim], dims: frozenset[Dim], sizes: Mapping[Dim, int]) -> int:
    """The elements of a tile along those of its axes that are whole."""
    return math.prod(power_of_two(sizes[size_class(dim)]) for dim in axes if dim in dims)


def measure(graph: Graph) -> Measure:
    """The counts that one block of a dim reduces: buffered edges, and loops that reread a row."""
    return len(graph.buffered_edges()), sum(_read_again(graph).values())


def _read_again(graph: Graph) -> dict[Dim, int]:
    """How often an iteration has another loop over the same dim, the most often first."""
    found: dict[Dim, int] = {}
    for path, level in graph.walk():
        loops = [op.dim for _, op in level.of_type(Map)] if path else []
        for dim in dict.fromkeys(loops):
            found[dim] = found.get(dim, 0) + loops.count(dim) - 1
    return {dim: count for dim, count in sorted(found.items(), key=lambda e: -e[1]) if count}


def _along_memory(graph: Graph) -> tuple[Dim, ...]:
    """The dims of the last axes of arrays: their elements lie side by side."""
    views = [given.view for given in graph.inputs if isinstance(given.view, Read)]
    return tuple(dim for view in views if view.axes for dim in dims_along(view.axes[-1]))


def _dims_of_dots(levels: Sequence[Graph]) -> frozenset[Dim]:
    """The dims that dots of a program have."""
    return frozenset(
        dim
        for level in levels
        for node in level.nodes
        if node.op == Functional("dot")
        for value in node.operands
        for dim in level.type_of(value).axes
    )
