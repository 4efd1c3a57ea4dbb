"""Which kernels take twice as many warps: those of wide results, alone on their processors.

Warps that multiply 16 rows share their columns. Where one program fills a processor's memory and
there are no more programs than processors, four warps are one for each scheduler: behind the loop,
where each thread has 64 results or more to finish, nothing runs while a warp waits. Eight warps
have half as many each, and hide one another's waits.
"""

from __future__ import annotations

from blockbuster.emit.schedule.block import LEAST
from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.emit.schedule.site import Site
from blockbuster.emit.schedule.warps import Warps
from blockbuster.emit.tile.layouts import WARP
from blockbuster.emit.tile.program import Let, Nest, TileProgram, statements
from blockbuster.emit.tile.tiling import tiling_of
from blockbuster.emit.tile.uses import Uses, is_matrix_dot
from blockbuster.selection.decisions.combining import programs
from blockbuster.selection.decisions.persistent import is_alone
from blockbuster.selection.price import priced
from blockbuster.selection.priors import PRIORS

WARPS = Warps()


def more_warps(scheduled: Scheduled) -> Scheduled:
    """``scheduled`` with eight warps where four have many results each, and nothing runs beside."""
    for number, nest in enumerate(scheduled.draft.nests, start=1):
        few = programs(scheduled, nest) <= scheduled.target.processors
        if nest.warps != PRIORS.schedulers or not few or not is_alone(scheduled, number):
            continue
        results = _results(scheduled.program, scheduled.program.nests[number - 1])
        if results >= PRIORS.results_of_more_warps:
            made = WARPS.apply(scheduled, Site(number), count=2 * PRIORS.schedulers)
            scheduled = _unless_much_worse(scheduled, made)
    return scheduled


def _results(program: TileProgram, nest: Nest) -> int:
    """The results of a dot of as few rows as can be multiplied, to a thread; 0 without one."""
    tiling = tiling_of(program, nest)
    if Uses(nest, tiling).fewest_rows() != LEAST:
        return 0
    lets = (stmt for stmt in statements(nest.body) if isinstance(stmt, Let))
    dots = [stmt for stmt in lets if is_matrix_dot(stmt, tiling)]
    return max(tiling.elements(dot.target) for dot in dots) // (WARP * nest.warps)


def _unless_much_worse(scheduled: Scheduled, made: Scheduled) -> Scheduled:
    try:
        most = PRIORS.stage_time_factor * priced(scheduled).microseconds
        worse = priced(made).microseconds > most
    except ValueError:  # a program does not fit
        return scheduled
    return scheduled if worse else made
