"""Which loops are cut into chunks, and into how many: enough to keep the device busy."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod

from blockbuster.emit.schedule.chunk_loops import ChunkLoop
from blockbuster.emit.schedule.chunkable import (
    not_apart,
    not_chunkable,
    not_side_by_side,
    totals_of,
)
from blockbuster.emit.schedule.combine import no_rows
from blockbuster.emit.schedule.on_grid import body_inside_grid
from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.emit.schedule.site import Site, loop_at, loops_of
from blockbuster.emit.tile.cut import Body
from blockbuster.emit.tile.dataflow import folded
from blockbuster.emit.tile.known_bounds import KnownBounds
from blockbuster.emit.tile.program import For, Nest, statements
from blockbuster.emit.tile.tiling import Tiling, power_of_two, tiling_of
from blockbuster.emit.tile.trips import blocks_in, bound_blocks
from blockbuster.emit.tile.uses import matrix_dots
from blockbuster.errors import EmitError, message
from blockbuster.ir.types import Dim, size_class
from blockbuster.selection.decisions.combining import in_one_tile, rows_spread
from blockbuster.selection.decisions.sunk import sunk
from blockbuster.selection.priors import PRIORS

CHUNK = ChunkLoop()


def in_chunks(scheduled: Scheduled, *, asked: Mapping[Dim, int] | None = None) -> Scheduled:
    """``scheduled`` with long loops of few programs in chunks: as many as keep the device busy.

    ``asked`` says in how many chunks which dims are run instead, by dim or size class. Raises
    EmitError if none of the loops over such a dim can be.
    """
    nest, done = 1, dict[Dim, None]()
    while nest <= len(scheduled.draft.nests):
        scheduled = sunk(scheduled, nest)
        sizes = ChunkSizes(scheduled, scheduled.draft.nests[nest - 1], asked)
        loop = sizes.first()
        if loop is None:
            nest += 1
            continue
        site = next(site for site, found in loops_of(scheduled.draft) if found is loop)
        count = sizes.wanted[loop.dim]
        finely = in_one_tile(scheduled, site, count)
        if finely is None:
            at_once = sizes.fit_at_once(loop, count)
            finely = CHUNK.apply(scheduled, site, count=count, at_once=at_once)
            finely = rows_spread(scheduled, finely, site) if at_once else finely
        scheduled = finely
        done |= dict.fromkeys((loop.dim, size_class(loop.dim)))
    for dim in (dim for dim in asked or {} if dim not in done):
        raise EmitError(
            message(f"no loop over {dim} can be run in chunks: {_refusal(scheduled, dim)}")
        )
    return scheduled


def _refusal(scheduled: Scheduled, dim: Dim) -> str:
    sites: list[Site] = [
        site for site, loop in loops_of(scheduled.draft) if dim in (loop.dim, size_class(loop.dim))
    ]
    inner = [site for site in sites if not _is_on_grid(scheduled, site)]
    reasons = [CHUNK.why_not(scheduled, site, count=PRIORS.chunk_iterations) for site in inner]
    return (*reasons, "no nest has such a loop")[0]


def _is_on_grid(scheduled: Scheduled, site: Site) -> bool:
    loops, _ = body_inside_grid(scheduled.draft.nests[site.nest - 1])
    return any(loop_at(scheduled.draft, site) is loop for loop in loops)


@dataclass
class ChunkSizes:
    """How many chunks the loops of ``nest`` get. ``wanted`` has them for the loop found last."""

    scheduled: Scheduled
    of: Nest
    asked: Mapping[Dim, int] | None = None

    def __post_init__(self) -> None:
        self.tiling: Tiling = tiling_of(self.scheduled.draft, self.of)
        self.processors = self.scheduled.target.processors
        self.wanted: dict[Dim, int] = {}
        self._counting = {d for c in self.scheduled.draft.chunks for d in (c.number, c.lanes)}

    @cached_property
    def known(self) -> KnownBounds:
        """How many blocks the loops over spans have."""
        blocks = bound_blocks(self.scheduled.draft, self.scheduled.sizes)
        return KnownBounds(self.of, self.scheduled.sizes, blocks_in(self.of, blocks))

    def first(self) -> For | None:
        """The first loop of the nest that is to be run in chunks."""
        loops, body = body_inside_grid(self.of)
        return self._first(body, (*self.of.grid, *(loop.dim for loop in loops)), 1)

    def _first(self, body: Body, path: tuple[Dim, ...], around: int) -> For | None:
        for at, loop in enumerate(body):
            if not isinstance(loop, For):
                continue
            here, inside = self._programs(body, at, path, around)
            if here:
                self.wanted[loop.dim] = self.chunks(loop, path, around)
                return loop
            if inside:
                return self._first(loop.body, (*path, loop.dim), around * self.trips(loop.dim))
        return None

    def _programs(self, body: Body, at: int, path: tuple[Dim, ...], around: int) -> tuple[int, int]:
        """How many programs run the loop at ``at`` if it is in chunks, or a loop inside it is.

        0 for what cannot be or does not pay; only one of the two is not 0. ``around``: how many
        iterations of loops that are serial now surround it.
        """
        loop = body[at]
        if not isinstance(loop, For) or loop.dim in self._counting or loop.chunk is not None:
            return 0, 0
        count = self.chunks(loop, path, around)
        if count and not_chunkable(loop, body[:at], body[at + 1 :]):
            count = 0
        here = self.programs(path) * count
        if here and (self.asked is not None or 2 * here > self.processors):
            return here, 0
        trips = self.trips(loop.dim)
        inner = (
            max(self._programs(loop.body, i, (*path, loop.dim), around * trips))
            for i in range(len(loop.body))
            if loop.span is None
            and not (not_side_by_side(loop) or not_apart(body[:at]) or not_apart(loop.body[:i]))
        )
        inside = max(inner, default=0)
        return (0, inside) if inside > here else (here, 0)

    def trips(self, dim: Dim) -> int:
        """How many blocks ``dim`` has."""
        return -(-self.scheduled.sizes[size_class(dim)] // self.tiling.block(dim))

    def left(self, loop: For) -> int:
        """How many blocks of ``loop`` masks leave, on average over what is around it."""
        if loop.span is None:
            return self.trips(loop.dim)
        return math.ceil(self.known.trips(loop))

    def programs(self, path: tuple[Dim, ...]) -> int:
        """How many programs a grid over ``path`` has."""
        return prod(map(self.trips, path))

    def chunks(self, loop: For, path: tuple[Dim, ...], around: int) -> int:
        """The number of chunks for a loop in a grid over ``path``, or 0 to leave it whole.

        A power of two: at least one program per processor, ``programs_per_processor`` where the
        loop only waits for memory, if there are not half as many without, and if that leaves every
        chunk ``chunk_iterations`` iterations, and saves ``chunk_saved_iterations``. A parallel loop
        hands nothing on, so its chunks are free, however short. ``around``: iterations of loops
        around it that are serial now.
        """
        if self.asked is not None:
            return self.asked.get(loop.dim, self.asked.get(size_class(loop.dim), 0))
        programs, trips = max(self.programs(path), 1), self.left(loop)
        dots = matrix_dots(loop.body, self.tiling)
        busy = self.processors * (1 if dots else PRIORS.programs_per_processor)
        if 2 * programs > busy:
            return 0
        wanted = power_of_two(-(-busy // programs))
        most = power_of_two(trips // (1 if loop.parallel else PRIORS.chunk_iterations) + 1) // 2
        count = min(wanted, most)
        saved = max(around, 1) * self._depth(loop) * (trips - -(-trips // max(count, 1)))
        worth = 1 if loop.parallel else PRIORS.chunk_saved_iterations
        return count if count > 1 and saved >= worth else 0

    def _depth(self, loop: For) -> int:
        """How many iterations one of ``loop`` is in the loops inside it, all in a row."""
        inner = (stmt.dim for stmt in statements(loop.body) if isinstance(stmt, For))
        return max((self.trips(dim) for dim in inner if dim not in self._counting), default=1)

    def fit_at_once(self, loop: For, count: int) -> bool:
        """True if the partial results of all chunks fit in one tile."""
        everything = tuple(statements(self.of.body))
        rows = [fold for fold in totals_of(loop, everything) if not no_rows(fold)]
        tiles = [tile for fold in rows for tile in folded(fold)]
        widest = max(map(self.tiling.elements, tiles), default=0)
        return bool(tiles) and widest * count <= PRIORS.deferred_lanes
