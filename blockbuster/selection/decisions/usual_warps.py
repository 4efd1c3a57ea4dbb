"""How many warps a kernel usually has: by what it computes, and by how many programs run it.

Whole rows that leave processors idle have twice as many warps as others: more loads are under way,
and nothing else fills the waits. With rows for twice as many programs as processors some were 5%
slower, others 3% faster. Not where another kernel follows, which finds less room beside such
programs: RMSNorm and a product of 128 x 4096 x 4096 took an H200 14.2 microseconds instead of 13.3.

Blocks of columns, read across the rows of memory, have half as many: their warps meet more often
than they wait. Sums of 4096 columns of 4096 took 8.8 microseconds with 16 warps instead of 12.2
with 32, softmax of 4096 columns of 1024 7.1 with 8 instead of 7.9 with 16.
"""

from __future__ import annotations

from blockbuster.emit.schedule.on_grid import loops_of_programs
from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.emit.schedule.warps import MOST
from blockbuster.emit.tile.layouts import WARP, inward
from blockbuster.emit.tile.program import Load, Nest, statements
from blockbuster.emit.tile.tiling import Tiling, tiling_of
from blockbuster.emit.tile.uses import matrix_dots
from blockbuster.selection.decisions.combining import combining_warps, programs, widest
from blockbuster.selection.decisions.default_tiles import choose_warps
from blockbuster.selection.priors import PRIORS


def usual_warps(scheduled: Scheduled, nest: Nest) -> int:
    """The warps of a kernel of ``scheduled``, which is cut into blocks."""
    if warps := combining_warps(scheduled.draft, nest):
        return warps
    tiling = tiling_of(scheduled.draft, nest)
    warps = choose_warps(nest, tiling)
    if matrix_dots(nest.body, tiling):
        return warps
    if _reads_across(nest, tiling):
        return max(warps // 2, PRIORS.usual_warps)
    return min(2 * warps, MOST) if _has_few_rows(scheduled, nest, 2 * warps) else warps


def _reads_across(nest: Nest, tiling: Tiling) -> bool:
    """True if all blocks that ``nest`` loads lie across the rows of memory."""
    loads = (stmt for stmt in statements(nest.body) if isinstance(stmt, Load))
    lanes = {load: tiling.lanes(load.target) for load in loads}
    across = [
        inward(load.view, load.target)[-1] != d[1] for load, d in lanes.items() if len(d) == 2
    ]
    return bool(across) and all(across)


def _has_few_rows(scheduled: Scheduled, nest: Nest, warps: int) -> bool:
    """True if whole rows are enough for so many warps, and leave processors idle."""
    if len(scheduled.draft.nests) > 1 or loops_of_programs(nest):
        return False
    wide = widest(scheduled.draft, nest) >= PRIORS.row_lanes_of_more_warps * WARP * warps
    return wide and programs(scheduled, nest) <= scheduled.target.processors
