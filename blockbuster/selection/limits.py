"""What a search leaves out: schedules that do not fit, and those whose price is not to be trusted.

Threads can hold so much; some lines cost a device, or the host, what no term of the closed form
knows. Each limit has its case. None of them is narrower than the schedule that a search begins
with: a limit keeps what is there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import inf

from blockbuster.costs.work import loops_before_it_waits
from blockbuster.emit.schedule.block import least_lanes
from blockbuster.emit.schedule.jam import Jam
from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.emit.schedule.walk import Walk
from blockbuster.emit.tile.program import Fold, For, Issue, Let, Nest, statements
from blockbuster.emit.tile.shared_memory import tile_bytes
from blockbuster.emit.tile.tiling import Tiling, power_of_two, tiling_of
from blockbuster.emit.tile.uses import Uses, is_matrix_dot
from blockbuster.ir.dtypes import FLOAT8
from blockbuster.ir.types import Dim, size_class
from blockbuster.selection.cost import Cost
from blockbuster.selection.decisions.beside import ends_late
from blockbuster.selection.decisions.combining import combining_warps
from blockbuster.selection.decisions.default_tiles import THREADS, widest_computed
from blockbuster.selection.price import Times, priced

HELD = 128
"""Elements of a tile to a thread, at most: what has more spills, whatever else there is."""

HELD_ALONE = 64
"""The same where no dot is, whose loads are what keeps memory busy: by the closed form warps with
twice as many take as long. What combines chunks has warps of its own (combining.py). The largest
element of 256 normed rows of 131072 took an H200 39.3 microseconds with 128 elements to a thread,
27.0 with 64, LayerNorm of such rows 64.5 and 59.8.
"""

ROOMS = {Walk.name: 1.0, Jam.name: 1.1}
"""The part of the registers that a thread can have and an estimate may want, where it is not usual:
walking kernels have no totals, and of the kernels that the usual part was fitted to, all that came
near it had totals."""

NARROWEST, RUNNING = 32, 64
"""Lanes of a dim of dots, at least, but of rows: matrix units take half as many slowly. And of a
dim that is walked under a running exponent: each step rescales, and takes two reductions. Decoding
attention in steps of 32 keys took an H200 39.0, 14.8 and 41.9 microseconds where steps of 64 took
37.2, 14.0 and 38.8; by the closed form they take as long.
"""

LONG, IN_TURN = 20.0, 12.0
"""Microseconds of a kernel from which on it may load by descriptors: the host makes one for each
array and launch, and is ready then before the kernel before has ended. A launch of three arrays
takes it 6.7, as many more as descriptors take it longer. And of a product by a fixed number of
programs, whose loads run ahead by descriptors alone: 64 x 512 x 128 x 512 took an H200 15.9 so,
with nothing in the cache 19.6, and 21.0 and 24.4 by pointers.
"""

WIDE = 1 << 14
"""Bytes of a tile from which on descriptors help: attention of depth 64 in steps of 64 keys, 8 kB
each, took 160 microseconds by pointers and 176 by descriptors. Of float8 half as many bytes count:
a product of 4096^3 with tiles of 8 kB took 149 by pointers and 143 by descriptors, and 454 and 279
where operands become float16 first."""


def rooms(scheduled: Scheduled) -> dict[int, float]:
    """The part of the registers that an estimate of each nest may want, where it is not usual."""
    lines = (line for line in scheduled.moves if line.move in ROOMS)
    return {line.site.nest: ROOMS[line.move] for line in lines}


def is_held(scheduled: Scheduled) -> bool:
    """True if the threads of every kernel can hold its largest tile; it has warps."""
    draft = scheduled.draft
    for nest in draft.nests:
        tiling = tiling_of(draft, nest)
        alone = Uses(nest, tiling).fewest_rows() == 0 and not combining_warps(draft, nest)
        held = HELD_ALONE if alone else HELD
        if widest_computed(nest, tiling) > held * THREADS * nest.warps:
            return False
    return True


@dataclass(frozen=True)
class Limits:
    """The limits of a search from a schedule. ``fewest``: the lanes of dims, at least; ``nests``:
    kernels, at most, if no loop may be run in chunks."""

    fewest: Mapping[Dim, int]
    nests: float = inf

    @staticmethod
    def of(start: Scheduled, *, in_chunks: bool) -> Limits:
        """Those of the program of ``start``."""
        bare, fewest = Tiling({}, start.start.units), dict[Dim, int]()
        for dim, lanes in (one for nest in start.start.nests for one in _fewest(nest, bare)):
            cut = (b.lanes for n in start.draft.nests for b in n.blocks if b.dim == dim)
            known = min(cut, default=lanes)
            most = power_of_two(start.sizes[size_class(dim)])
            fewest[dim] = max(fewest.get(dim, 1), min(lanes, known, most))
        return Limits(fewest, inf if in_chunks else len(start.draft.nests))

    def allow(self, scheduled: Scheduled) -> bool:
        """False for a schedule that is not worth a price."""
        draft = scheduled.draft
        return len(draft.nests) <= self.nests and all(
            self._allow(nest, tiling_of(draft, nest))
            and combining_warps(draft, nest) in (0, nest.warps)
            for nest in draft.nests
        )

    def _allow(self, nest: Nest, tiling: Tiling) -> bool:
        dots = least_lanes(nest, tiling.units)  # other kernels may cut the same dims otherwise
        wanted = ((dim, lanes) for dim, lanes in self.fewest.items() if dim in dots)
        return all(tiling.blocks.get(dim, lanes) >= lanes for dim, lanes in wanted) and all(
            tile_bytes(stmt.tile, tiling) >= (WIDE // 2 if stmt.tile.dtype == FLOAT8 else WIDE)
            for stmt in _described(nest)
        )


def times(scheduled: Scheduled, limits: Limits | None = None) -> Times:
    """The times of a schedule; infinite if a program does not fit, wants more registers than there
    are, or is not within ``limits``.
    """
    if not is_held(scheduled) or (limits and not limits.allow(scheduled)):
        return Times(inf)
    try:
        cost = priced(scheduled)
    except ValueError:  # it does not fit a processor, or the machine lacks a rate
        return Times(inf)
    slow = is_early(scheduled, cost, IN_TURN) or waits_in_turn(scheduled) or ends_late(scheduled)
    if (limits and slow) or cost.spills_beside(rooms(scheduled)):
        return Times(inf)
    return Times(cost.microseconds, cost.each, cost)


def microseconds(scheduled: Scheduled) -> float:
    """The price of a schedule; infinite as ``times`` says."""
    return times(scheduled).microseconds


def is_early(scheduled: Scheduled, cost: Cost, by_a_grid: float = LONG) -> bool:
    """True if a kernel that loads by descriptors takes so little that the host would be late.

    ``by_a_grid``: what it takes at least where it has no fixed number of programs. A search passes
    by such schedules on its way to others.
    """
    return any(
        time < (IN_TURN if nest.programs else by_a_grid) and any(True for _ in _described(nest))
        for nest, time in zip(scheduled.draft.nests, cost.each, strict=True)
    )


def waits_in_turn(scheduled: Scheduled) -> bool:
    """True if a kernel by a fixed number of programs waits in each place, behind a loop, for the
    kernel before. Triton 3.9 lets no loads run ahead in a loop over places with a wait in it:
    compiled, RMSNorm and a product of 2048 x 4096 x 4096 has a third of its shared memory then.
    """
    return any(nest.programs and loops_before_it_waits(nest) for nest in scheduled.program.nests)


def _described(nest: Nest) -> Iterator[Issue]:
    return (s for s in statements(nest.body) if isinstance(s, Issue) and s.described)


def _fewest(nest: Nest, tiling: Tiling) -> Iterator[tuple[Dim, int]]:
    """The lanes that dims of dots but rows, and walked ones with a running exponent, have."""
    for stmt in statements(nest.body):
        if isinstance(stmt, Let) and is_matrix_dot(stmt, tiling):
            rows = tiling.lanes(stmt.target)[0]
            dims = dict.fromkeys(dim for tile in stmt.args for dim in tiling.lanes(tile))
            yield from ((dim, NARROWEST) for dim in dims if dim != rows)
    for loop in (stmt for stmt in statements(nest.body) if isinstance(stmt, For)):
        if any(isinstance(stmt, Fold) and stmt.members for stmt in loop.body):
            yield loop.dim, RUNNING
