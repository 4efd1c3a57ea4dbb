"""How many warps a kernel usually has: by what it computes, and by how many programs run it.

Whole rows that leave processors idle have twice as many warps as others: more loads are under way,
and nothing else fills the waits. Of 32 rows of 4096, RMSNorm took an H200 1.37 microseconds instead
of 1.60, the largest normed element 1.44 instead of 1.62, LayerNorm 1.68 instead of 1.81, softmax
1.66 instead of 1.69. With rows for twice as many programs as processors some were 5% slower, others
3% faster. Not where another kernel follows, which finds less room beside such programs: RMSNorm and
a product of 128 x 4096 x 4096 took 14.2 microseconds instead of 13.3.
"""

from __future__ import annotations

from blockbuster.emit.schedule.on_grid import body_inside_grid
from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.emit.schedule.warps import MOST
from blockbuster.emit.tile.program import For, Let, Nest, statements
from blockbuster.emit.tile.tiling import tiling_of
from blockbuster.emit.tile.uses import is_matrix_dot
from blockbuster.selection.decisions.combining import combining_warps, programs, widest
from blockbuster.selection.decisions.default_tiles import THREADS, choose_warps

LANES = 16
"""Lanes of a row to a thread, at least, where warps are doubled."""


def usual_warps(scheduled: Scheduled, nest: Nest) -> int:
    """The warps of a kernel of ``scheduled``, which is cut into blocks."""
    if warps := combining_warps(scheduled.draft, nest):
        return warps
    warps = choose_warps(nest, tiling_of(scheduled.draft, nest))
    return min(2 * warps, MOST) if _has_few_rows(scheduled, nest, 2 * warps) else warps


def _has_few_rows(scheduled: Scheduled, nest: Nest, warps: int) -> bool:
    """True if whole rows are enough for so many warps, and leave processors idle."""
    tiling, inside = tiling_of(scheduled.draft, nest), body_inside_grid(nest)[1]
    looped = any(isinstance(stmt, For) for stmt in inside)
    lets = (stmt for stmt in statements(nest.body) if isinstance(stmt, Let))
    alone = len(scheduled.draft.nests) == 1
    if looped or not alone or any(is_matrix_dot(let, tiling) for let in lets):
        return False
    wide = widest(scheduled.draft, nest) >= LANES * THREADS * warps
    return wide and programs(scheduled, nest) <= scheduled.target.processors
