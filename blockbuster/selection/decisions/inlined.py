"""Which kernels are left out, because those that read what they make can make it themselves.

A kernel that combines the partial results of chunks takes little longer than its launch. If the
closed form says that it is cheaper, each program of its readers loads these partial results
instead. An H100 took 74.8 microseconds instead of 76.6 for attention by random features of 8192
positions, in four kernels instead of five, of which one took 16 maxima of 16 numbers; 6.8 instead
of 7.2 for a matrix of 2048 x 2048 whose largest element is subtracted, 3.2 instead of 4.0 for one
of 4096 x 64 whose columns are; but 52.4 instead of 51.0 for the norms of 1024 columns
(bench/results/2026-11-25-h100). First the kernel gets the blocks of its readers: its own are
smaller, so that it fills the device.

Blocks of a matrix are made again only where a loop adds up their chunks: LayerNorm and a product
of 16 rows took an H200 11.4 microseconds before (bench/results/2026-11-24-h200-ranks) and 10.0
after (bench/results/2026-11-26-h200). Blocks that are combined in one tile would all be held at
once. And a kernel that makes one element of each element of a matrix combines nothing: what fusion
stores between kernels stays stored.

Not in loops of readers, where the partial results would be combined in each iteration.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import inf

from blockbuster.emit.schedule.inline import Inline
from blockbuster.emit.schedule.on_grid import body_inside_grid, loops_of_programs
from blockbuster.emit.schedule.recut import Recut
from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.emit.schedule.site import Site
from blockbuster.emit.tile.changed import changed
from blockbuster.emit.tile.constants import kept_nests
from blockbuster.emit.tile.dataflow import loaded, stored
from blockbuster.emit.tile.each_nest import KEPT
from blockbuster.emit.tile.program import (
    WORKSPACE,
    Nest,
    Store,
    TileProgram,
    statements,
)
from blockbuster.emit.tile.tiling import tiling_of
from blockbuster.emit.tile.uses import matrix_dots
from blockbuster.errors import EmitError
from blockbuster.selection.decisions.combining import combining_warps, stores_blocks
from blockbuster.selection.decisions.overlapping import overlapped
from blockbuster.selection.decisions.usual_settings import staged
from blockbuster.selection.decisions.usual_warps import usual_warps
from blockbuster.selection.price import priced
from blockbuster.selection.priors import PRIORS

INLINE, RECUT = Inline(), Recut()


def inlined(scheduled: Scheduled) -> Scheduled:
    """``scheduled``, which has no warps yet, without the kernels that are cheaper made again."""
    number = 1
    while number <= len(scheduled.draft.nests):
        made = _without(scheduled, number)
        scheduled, number = (made, number) if made else (scheduled, number + 1)
    return scheduled


def combines_few(program: TileProgram, nest: Nest) -> bool:
    """True if ``nest`` combines what other kernels made, and does little else.

    It makes numbers or rows of it, or adds up blocks in a loop.
    """
    read, made = loaded(nest.body), stored(nest.body)
    if not read or any(buffer.space != WORKSPACE for buffer in (*read, *made)):
        return False
    if combining_warps(program, nest) or (stores_blocks(nest) and not _adds_up(nest)):
        return False
    tiling = tiling_of(program, nest)
    return not matrix_dots(nest.body, tiling)


def _adds_up(nest: Nest) -> bool:
    """True if each program has loops, and stores nothing before they end."""
    loops = loops_of_programs(nest)
    inside = (stmt for loop in loops for stmt in statements(loop.body))
    return bool(loops) and not any(isinstance(stmt, Store) for stmt in inside)


def _without(scheduled: Scheduled, number: int) -> Scheduled | None:
    """``scheduled`` with what a nest makes in its readers; None if they cannot make it, would in
    every iteration of a loop, or take no less time then.
    """
    draft, at = scheduled.draft, number - 1
    if not combines_few(draft, draft.nests[at]) or at in kept_nests(draft):
        return None
    readers = readers_of(draft, at)
    if any(in_a_loop(draft.nests[reader], draft.nests[at]) for reader in readers):
        return None
    try:
        made = INLINE.apply(_in_blocks_of(scheduled, number, readers), Site(number))
    except EmitError:
        return None
    usual = _microseconds(scheduled, (at, *readers))
    return made if _microseconds(made, [reader - 1 for reader in readers]) < usual else None


def readers_of(program: TileProgram, at: int) -> list[int]:
    """The positions of the nests that load what the nest at position ``at`` stores."""
    arrays = stored(program.nests[at].body).keys()
    nests = enumerate(program.nests)
    return [i for i, nest in nests if not arrays.isdisjoint(loaded(nest.body))]


def in_a_loop(reader: Nest, nest: Nest) -> bool:
    """True if ``reader`` loads what ``nest`` stores inside a loop that no grid runs."""
    arrays = stored(nest.body).keys()
    return any(not arrays.isdisjoint(loaded(loop.body)) for loop in loops_of_programs(reader))


def _in_blocks_of(scheduled: Scheduled, number: int, readers: Sequence[int]) -> Scheduled:
    """``scheduled`` with the nest's rows in the blocks that all its readers have, if it can be."""
    nests, site = scheduled.draft.nests, Site(number)
    blocks = [block for reader in readers for block in nests[reader].blocks]
    for dim in (loop.dim for loop in body_inside_grid(nests[number - 1])[0]):
        found = {block.lanes for block in blocks if block.dim == dim}
        lanes = found.pop() if len(found) == 1 else 0
        if lanes and not RECUT.why_not(scheduled, site, dim=dim, lanes=lanes):
            scheduled = RECUT.apply(scheduled, site, dim=dim, lanes=lanes)
    return scheduled


def _microseconds(scheduled: Scheduled, kernels: Sequence[int]) -> float:
    """The time of some kernels, by position, with the usual warps and stages; infinite if a program
    does not fit, or no rate is known for it.
    """
    nests = [scheduled.draft.nests[at] for at in kernels]
    nests = [changed(nest, warps=usual_warps(scheduled, nest)) for nest in nests]
    part = changed(scheduled.draft, nests=tuple(nests), constants=())  # no call keeps what it made
    return _taken(changed(scheduled, draft=part, moves=scheduled.moves[:1]))


@lru_cache(maxsize=KEPT)  # schedules that differ in other kernels ask for the same
def _taken(scheduled: Scheduled) -> float:
    try:
        stages = [PRIORS.usual_stages] * len(scheduled.draft.nests)
        return priced(overlapped(staged(scheduled, stages))).microseconds
    except ValueError:
        return inf
