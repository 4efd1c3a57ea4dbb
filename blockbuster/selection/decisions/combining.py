"""How chunks of a loop are combined: in many programs, and in one tile if it is small enough.

The kernel that combines them has the blocks of the loop, whose rows are those of a matrix
instruction. Where that leaves most of the device idle, each program waits for one partial result
after the other: measured, 12 of 51 microseconds of a decoding attention (README of
bench/results/2026-11-22-h200-costs, decode-32768), and with a program for each row still 8 of 18.
Loads that run ahead do not help: self-attention in 8 chunks took 8.4 microseconds with and 6.8
without them, a chain of products 9.0 and 7.4. In one tile all partial results are loaded at once.
"""

from __future__ import annotations

from math import prod

from blockbuster.emit.schedule.chunk_loops import ChunkLoop
from blockbuster.emit.schedule.chunkable import totals_of
from blockbuster.emit.schedule.on_grid import body_inside_grid, loops_of_programs
from blockbuster.emit.schedule.recut import Recut
from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.emit.schedule.site import Site, loop_at, loops_of
from blockbuster.emit.tile.dataflow import folded
from blockbuster.emit.tile.layouts import WARP
from blockbuster.emit.tile.program import (
    For,
    Init,
    Let,
    Load,
    Nest,
    Store,
    Tile,
    TileProgram,
    statements,
)
from blockbuster.emit.tile.tiling import power_of_two, tiling_of
from blockbuster.errors import EmitError
from blockbuster.ir.types import Dim, size_class
from blockbuster.selection.priors import PRIORS

CHUNK, RECUT = ChunkLoop(), Recut()


def in_one_tile(scheduled: Scheduled, site: Site, count: int) -> Scheduled | None:
    """``scheduled`` with the loop at ``site`` in chunks whose blocks are combined in one tile each.

    None if it accumulates no blocks, if such a tile would be too wide, however few rows a program
    has, or if the kernel that combines them would hold another loop.
    """
    loop, args = loop_at(scheduled.draft, site), {"count": count, "at_once": True, "blocks": True}
    nest = scheduled.draft.nests[site.nest - 1]
    assert loop is not None
    if not accumulates_blocks(loop, nest):
        return None
    try:
        made = CHUNK.apply(scheduled, site, **args)
    except EmitError:
        return None
    last = site.nest + len(made.draft.nests) - len(scheduled.draft.nests)
    if loops_of_programs(made.draft.nests[last - 1]):
        return None
    made = _spread(made, Site(last), rows_of(made.draft.nests[last - 1]))
    return made if widest(made.draft, made.draft.nests[last - 1]) <= PRIORS.combined_lanes else None


def rows_spread(scheduled: Scheduled, made: Scheduled, site: Site) -> Scheduled:
    """``made``, which is ``scheduled`` with the chunks of the loop at ``site`` combined at once.

    The kernel that combines rows has the rows of the loop's blocks; it gets a program for fewer of
    them where that leaves processors idle. Cross-entropy of 1024 rows in 32 chunks took an H200
    29.5 microseconds with 128 rows to a program, 25.4 with 4.
    """
    last = site.nest + len(made.draft.nests) - len(scheduled.draft.nests)
    nest = made.draft.nests[last - 1]
    if last == site.nest or loops_of_programs(nest) or stores_blocks(nest):
        return made
    rows = dict.fromkeys(dim for tile in made_by(nest) for dim in tile.axes)
    return _spread(made, Site(last), tuple(rows))


def accumulates_blocks(loop: For, nest: Nest) -> bool:
    """True if the iterations of ``loop`` add up a block, and not rows or numbers alone."""
    inside = [stmt.target for stmt in statements(loop.body) if isinstance(stmt, Init)]
    totals = totals_of(loop, tuple(statements(nest.body)))
    tiles = (tile for fold in totals for tile in folded(fold))
    return any(len(tile.axes) > 1 and tile not in inside for tile in tiles)


def combined_finely(scheduled: Scheduled) -> Scheduled:
    """``scheduled`` with the combining of chunks one by one spread over the device.

    So where it is done in too few programs.
    """
    counts = {chunks.number: chunks.count for chunks in scheduled.draft.chunks}
    for site, loop in list(loops_of(scheduled.draft)):
        if loop.dim not in counts or loop.parallel:
            continue
        nest = scheduled.draft.nests[site.nest - 1]
        if programs(scheduled, nest) >= scheduled.target.processors:
            continue
        scheduled = _spread(scheduled, Site(site.nest), rows_of(nest))
    return scheduled


def _spread(scheduled: Scheduled, site: Site, rows: tuple[Dim, ...]) -> Scheduled:
    """The nest at ``site`` in as many programs as the device has processors, if it can be.

    In more, if a tile would be too wide in these. Each has fewer lanes of ``rows``.
    """
    processors = scheduled.target.processors
    for dim in rows:
        nest = scheduled.draft.nests[site.nest - 1]
        lanes = tiling_of(scheduled.draft, nest).block(dim)
        idle = -(-processors // max(programs(scheduled, nest), 1))
        left = max(idle, -(-widest(scheduled.draft, nest) // PRIORS.combined_lanes))
        spread = max(lanes >> max(left - 1, 0).bit_length(), 1)
        fewer = min(spread, power_of_two(scheduled.sizes[size_class(dim)]))
        if fewer < lanes and not RECUT.why_not(scheduled, site, dim=dim, lanes=fewer):
            scheduled = RECUT.apply(scheduled, site, dim=dim, lanes=fewer)
    return scheduled


def combining_warps(program: TileProgram, nest: Nest) -> int:
    """The warps of a kernel that combines the chunks of blocks in one tile; 0 for another."""
    lanes = [chunks.lanes for chunks in program.chunks]
    loads = (stmt.target.axes for stmt in statements(nest.body) if isinstance(stmt, Load))
    if not any(len(axes) > 2 and axes[-1] in lanes for axes in loads):
        return 0
    tiling = tiling_of(program, nest)
    results = max(map(tiling.elements, made_by(nest)))
    needed = power_of_two(-(-widest(program, nest) // (WARP * PRIORS.combined_lanes_per_thread)))
    own = results // (WARP * PRIORS.own_results_per_thread)
    return max(needed, min(PRIORS.most_own_warps, own))


def widest(program: TileProgram, nest: Nest) -> int:
    """The lanes of the widest tile that ``nest`` loads or computes."""
    tiling = tiling_of(program, nest)
    made = (stmt.target for stmt in statements(nest.body) if isinstance(stmt, Load | Let))
    return max(map(tiling.elements, made), default=0)


def rows_of(nest: Nest) -> tuple[Dim, ...]:
    """The dims of what ``nest`` stores but the last, along which memory is read in lines."""
    return tuple(dict.fromkeys(dim for tile in made_by(nest) for dim in tile.axes[:-1]))


def stores_blocks(nest: Nest) -> bool:
    """True if ``nest`` makes blocks, and not rows or numbers alone."""
    return any(len(tile.axes) > 1 for tile in made_by(nest))


def made_by(nest: Nest) -> tuple[Tile, ...]:
    """The tiles that ``nest`` stores."""
    return tuple(stmt.value for stmt in statements(nest.body) if isinstance(stmt, Store))


def blocks(scheduled: Scheduled, nest: Nest, dim: Dim) -> int:
    """How many blocks a nest of the draft makes of ``dim``."""
    return -(-scheduled.sizes[size_class(dim)] // tiling_of(scheduled.draft, nest).block(dim))


def programs(scheduled: Scheduled, nest: Nest) -> int:
    """How many programs run ``nest``."""
    dims = (*nest.grid, *(loop.dim for loop in body_inside_grid(nest)[0]))
    return prod(blocks(scheduled, nest, dim) for dim in dims)
