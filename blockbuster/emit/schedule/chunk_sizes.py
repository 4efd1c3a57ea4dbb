"""Which loops are run in chunks, and in how many: what ``chunk_loops`` asks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from blockbuster.emit.tile.cut import Body
from blockbuster.emit.tile.dataflow import folded, reads
from blockbuster.emit.tile.program import Fold, For, Init, Store, kept_empty, statements
from blockbuster.emit.tile.tiling import Tiling, power_of_two
from blockbuster.emit.tile.uses import is_matrix_dot
from blockbuster.ir.types import Dim, size_class
from blockbuster.rules.safety import RESCALED

FEWEST = 2  # iterations of a chunk: less would be one block, and no loop
STREAMS = 4  # programs per processor where no dot is: each waits for memory most of the time
WORTH = 8  # iterations saved one after the other; about as long as another launch


@dataclass(frozen=True)
class ChunkSizes:
    """How many chunks a loop gets, for ``processors`` or as ``asked`` by dim or size class.

    ``processors``: how many programs the device runs at once at least.
    """

    tiling: Tiling
    processors: int
    asked: Mapping[Dim, int] | None = None

    def trips(self, dim: Dim) -> int:
        """How many blocks ``dim`` has."""
        return -(-self.tiling.sizes[size_class(dim)] // self.tiling.blocks[dim])

    def programs(self, path: tuple[Dim, ...]) -> int:
        """How many programs a grid over ``path`` has."""
        return prod(map(self.trips, path))

    def chunks(self, loop: For, path: tuple[Dim, ...], around: int) -> int:
        """The number of chunks for a loop in a grid over ``path``, or 0 to leave it whole.

        A power of two: at least one program per processor, ``STREAMS`` where the loop only waits
        for memory, if that leaves every chunk ``FEWEST`` iterations, and saves ``WORTH``. A
        parallel loop hands nothing on, so its chunks are free, however short. ``around``:
        iterations of loops around it that are serial now.
        """
        if self.asked is not None:
            return self.asked.get(loop.dim, self.asked.get(size_class(loop.dim), 0))
        programs, trips = max(self.programs(path), 1), self.trips(loop.dim)
        if 2 * programs > self.processors:
            return 0
        dots = any(is_matrix_dot(stmt, self.tiling) for stmt in statements(loop.body))
        wanted = power_of_two(-(-self.processors * (1 if dots else STREAMS) // programs))
        most = power_of_two(trips // (1 if loop.parallel else FEWEST) + 1) // 2
        count = min(wanted, most)
        saved = max(around, 1) * self._depth(loop) * (trips - -(-trips // max(count, 1)))
        return count if count > 1 and saved >= (1 if loop.parallel else WORTH) else 0

    def _depth(self, loop: For) -> int:
        """How many iterations one of ``loop`` is in the loops inside it, all in a row."""
        inner = (stmt.dim for stmt in statements(loop.body) if isinstance(stmt, For))
        known = (dim for dim in inner if dim in self.tiling.blocks)  # no loop that combines chunks
        return max((self.trips(dim) for dim in known), default=1)


def totals_of(loop: For, before: Body) -> list[Fold]:
    """The folds of ``loop`` into accumulators that start ``before`` it."""
    started = [stmt.target for stmt in before if isinstance(stmt, Init)]
    folds = (stmt for stmt in statements(loop.body) if isinstance(stmt, Fold))
    return [fold for fold in folds if fold.target in started]


def not_side_by_side(loop: For) -> str:
    """Why what iterations of ``loop`` store cannot be stored side by side, or ""."""
    for stmt in statements(loop.body):
        if isinstance(stmt, Store) and loop.dim not in stmt.view.runs:
            return f"all its iterations store {stmt.view.buffer.name} at one place"
    return ""


def not_chunkable(loop: For, before: Body, behind: Body) -> str:
    """Why ``loop``, between ``before`` and ``behind``, cannot be run in chunks, or ""."""
    inside = [stmt for stmt in statements(loop.body) if isinstance(stmt, Fold)]
    started = [s.target for s in (*before, *statements(loop.body)) if isinstance(s, Init)]
    totals = totals_of(loop, before)
    if reason := not_apart(before) or not_side_by_side(loop):
        return reason
    for fold in inside:
        for tile in folded(fold):
            if tile not in started:
                return f"{tile.name} does not start beside the loop"
        known = (m.factor == kept_empty(RESCALED, m.monoid) for m in fold.members)
        if fold in totals and not all(known):
            return f"what {fold.target.name} rescales is not known to combine"
    for fold in totals:
        for tile in folded(fold):
            if tile in reads(loop.body):
                return f"{tile.name} is read in the loop, before it is complete"
            if sum(folded(s).count(tile) for s in statements((*before, loop, *behind))) > 1:
                return f"{tile.name} is folded at two places"
            if tile.per_lane:
                return f"{tile.name} has an entry per lane"
    return ""


def not_apart(before: Body) -> str:
    """Why what stands ``before`` a loop cannot run in a nest of its own, or ""."""
    started = [stmt.target for stmt in statements(before) if isinstance(stmt, Init)]
    for stmt in statements(before):
        for tile in folded(stmt):
            if tile not in started:
                return f"{tile.name}, which starts outside, is folded before the loop"
    return ""
