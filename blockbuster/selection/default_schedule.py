"""The schedule of a program that nobody has tuned: which moves, where, with which arguments."""

from __future__ import annotations

from collections.abc import Mapping

from blockbuster.emit.schedule.block import BlockDims, whole_program_cut
from blockbuster.emit.schedule.finish_rows import FinishRows, beside_a_dot
from blockbuster.emit.schedule.scheduled import Scheduled, unscheduled
from blockbuster.emit.schedule.site import EVERYWHERE, Site, loop_at, statement_at
from blockbuster.emit.schedule.split import Split
from blockbuster.emit.schedule.stage import Stage
from blockbuster.emit.schedule.warps import Warps
from blockbuster.emit.target.compiler import Target
from blockbuster.emit.tile.dtypes import dtype_of
from blockbuster.emit.tile.program import Let, TileProgram
from blockbuster.emit.tile.tiling import Tiling, tiling_of
from blockbuster.emit.tile.typed import is_accurate
from blockbuster.emit.tile.uses import is_matrix_dot
from blockbuster.ir.types import Dim
from blockbuster.selection.chunk_sizes import in_chunks
from blockbuster.selection.default_tiles import STAGES, choose_tiling, choose_warps
from blockbuster.selection.deferral import deferred

BLOCK, FINISH, SPLIT, STAGE, WARPS = BlockDims(), FinishRows(), Split(), Stage(), Warps()


def default_schedule(
    program: TileProgram,
    sizes: Mapping[Dim, int],
    *,
    device: Target,
    tiles: Mapping[Dim, int] | None = None,
    warps: int | None = None,
    chunks: Mapping[Dim, int] | None = None,
) -> Scheduled:
    """``program``, which has dtypes, with the default schedule for these sizes (by size class).

    ``tiles``, ``warps`` and ``chunks``: instead of the defaults.
    """
    tiling = choose_tiling(program, sizes, tiles or {}, dtype_of(program.dtype), device)
    scheduled = unscheduled(program, sizes, device)
    if cuts := whole_program_cut(program, tiling.blocks, tiling.whole):
        scheduled = BLOCK.apply(scheduled, EVERYWHERE, cuts=cuts)
    if is_accurate(program):
        scheduled = finished(scheduled)
    if not SPLIT.why_not(scheduled, EVERYWHERE):
        scheduled = SPLIT.apply(scheduled, EVERYWHERE)
    scheduled = deferred(in_chunks(scheduled, asked=chunks))
    return staged(with_warps(scheduled, warps))


def finished(scheduled: Scheduled) -> Scheduled:
    """``scheduled`` with rows finished in the order that rounds least, but beside dots.

    Only results in float32 show how often a value was rounded; in a loop that holds a dot a
    division per element costs more than it is worth.
    """
    units = Tiling({}, scheduled.draft.units)
    passed: list[Let] = []
    while True:
        for site in FINISH.sites(scheduled):
            let = statement_at(scheduled.draft, site)
            assert isinstance(let, Let)
            if let not in passed and not beside_a_dot(let, scheduled.draft, units):
                scheduled = FINISH.apply(scheduled, site)
                break
            passed.append(let)
        else:
            return scheduled


def with_warps(scheduled: Scheduled, warps: int | None) -> Scheduled:
    """``scheduled`` with so many warps in all kernels, or as many as each usually has."""
    draft = scheduled.draft
    usual = [warps or choose_warps(nest, tiling_of(draft, nest)) for nest in draft.nests]
    if len(set(usual)) == 1:
        return WARPS.apply(scheduled, EVERYWHERE, count=usual[0])
    for number, count in enumerate(usual, start=1):
        scheduled = WARPS.apply(scheduled, Site(number), count=count)
    return scheduled


def staged(scheduled: Scheduled) -> Scheduled:
    """``scheduled`` with the loads of dots running ahead, wherever they can."""
    for site in list(STAGE.sites(scheduled)):
        loop = loop_at(scheduled.draft, site)
        assert loop is not None
        tiling = tiling_of(scheduled.draft, scheduled.draft.nests[site.nest - 1])
        if any(is_matrix_dot(stmt, tiling) for stmt in loop.body):
            scheduled = STAGE.apply(scheduled, site, stages=STAGES)
    return scheduled
