"""How the chunks of a loop are combined: by many small programs.

The kernel that combines them has the blocks of the loop, whose rows are those of a matrix
instruction. If that leaves most of the device idle, each program waits for one partial result after
the other: measured, 12 of 51 microseconds of a decoding attention (README of
bench/results/2026-11-22-h200-costs, decode-32768). Loads that run ahead do not help: self-attention
in 8 chunks took 8.4 microseconds with and 6.8 without them, a chain of products 9.0 and 7.4.
"""

from __future__ import annotations

from math import prod

from blockbuster.emit.schedule.chunk_loops import body_inside_grid
from blockbuster.emit.schedule.recut import Recut
from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.emit.schedule.site import Site, loops_of
from blockbuster.emit.tile.program import Nest, Store, statements
from blockbuster.emit.tile.tiling import Tiling, power_of_two, tiling_of
from blockbuster.ir.types import Dim, size_class

RECUT = Recut()


def combined_finely(scheduled: Scheduled) -> Scheduled:
    """``scheduled`` with the combining of chunks spread over the device.

    So where it is done chunk by chunk, in too few programs.
    """
    counts = {chunks.number: chunks.count for chunks in scheduled.draft.chunks}
    for site, loop in list(loops_of(scheduled.draft)):
        if loop.dim not in counts or loop.parallel:
            continue
        nest = scheduled.draft.nests[site.nest - 1]
        if programs(scheduled, nest) >= scheduled.target.processors:
            continue
        scheduled = _spread(scheduled, Site(site.nest))
    return scheduled


def _spread(scheduled: Scheduled, site: Site) -> Scheduled:
    """The nest at ``site`` in as many programs as the device has processors, if it can be."""
    processors = scheduled.target.processors
    for dim in rows_of(scheduled.draft.nests[site.nest - 1]):
        nest = scheduled.draft.nests[site.nest - 1]
        lanes = tiling_of(scheduled.draft, nest).block(dim)
        left = -(-processors // max(programs(scheduled, nest), 1))
        spread = max(lanes >> max(left - 1, 0).bit_length(), 1)
        fewer = min(spread, power_of_two(scheduled.sizes[size_class(dim)]))
        if fewer < lanes and not RECUT.why_not(scheduled, site, dim=dim, lanes=fewer):
            scheduled = RECUT.apply(scheduled, site, dim=dim, lanes=fewer)
    return scheduled


def rows_of(nest: Nest) -> tuple[Dim, ...]:
    """The dims of what ``nest`` stores but the last, along which memory is read in lines."""
    stores = (stmt for stmt in statements(nest.body) if isinstance(stmt, Store))
    return tuple(dict.fromkeys(dim for store in stores for dim in store.value.axes[:-1]))


def programs(scheduled: Scheduled, nest: Nest) -> int:
    """How many programs run ``nest``."""
    tiling: Tiling = tiling_of(scheduled.draft, nest)
    loops, _ = body_inside_grid(nest)
    dims = (*nest.grid, *(loop.dim for loop in loops))
    return prod(-(-scheduled.sizes[size_class(dim)] // tiling.block(dim)) for dim in dims)
