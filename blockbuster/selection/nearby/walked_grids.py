"""Grids whose programs could take several blocks in turn, and how many programs there are then.

A program of a kernel without loops loads what all its blocks share, waits for its rows, computes
and stores. If it takes several blocks, the first is done once, and rows arrive while others are
computed. On an H200 attention by random features of 8192 positions took 48 microseconds for its
last product with a program for each 128 rows, and 30 with two programs to a processor, each of
which takes 64 rows at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from blockbuster.emit.schedule.on_grid import body_inside_grid
from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.emit.schedule.site import Site
from blockbuster.emit.schedule.walk import Walk
from blockbuster.emit.tile.program import For, Load, Nest
from blockbuster.emit.tile.tiling import Tiling, tiling_of
from blockbuster.emit.tile.uses import is_matrix_dot
from blockbuster.ir.types import Dim, size_class
from blockbuster.selection.nearby.recut_blocks import Lines, cut
from blockbuster.selection.priors import PRIORS

WALK = Walk()


def walks_near(scheduled: Scheduled) -> Iterator[Lines]:
    """Each kernel of dots without loops with fewer programs, of as many rows and of half."""
    for number, nest in enumerate(scheduled.draft.nests, start=1):
        tiling = tiling_of(scheduled.draft, nest)
        for dim in _shared_along(nest, tiling):
            lanes = tiling.block(dim)
            for each in (lanes, lanes // 2) if lanes >= 2 * PRIORS.rows_cut_alone else (lanes,):
                blocks = (cut(number, dim, each),) if each != lanes else ()
                for count in _counts(scheduled, nest, tiling, dim, each):
                    yield *blocks, WALK.line(Site(number, dim), count=count)


def _shared_along(nest: Nest, tiling: Tiling) -> Iterator[Dim]:
    """The dims of the grid along which programs load something again, if each has dots at once."""
    loops, body = body_inside_grid(nest)
    if any(isinstance(stmt, For) for stmt in body):
        return
    if not any(is_matrix_dot(stmt, tiling) for stmt in body):
        return
    loads = [stmt for stmt in body if isinstance(stmt, Load)]
    for loop in loops:
        shared = any(loop.dim not in load.view.runs for load in loads)
        if tiling.block(loop.dim) > 1 and shared:
            yield loop.dim


def _counts(
    scheduled: Scheduled, nest: Nest, tiling: Tiling, dim: Dim, lanes: int
) -> Iterator[int]:
    """Powers of two that fill the device, if each program then has several blocks."""
    others = [loop.dim for loop in body_inside_grid(nest)[0] if loop.dim != dim]
    sizes = scheduled.sizes
    around = prod(-(-sizes[size_class(d)] // tiling.block(d)) for d in (*nest.grid, *others))
    blocks = -(-sizes[size_class(dim)] // lanes)
    for programs in PRIORS.walking_programs:
        most = programs * scheduled.target.processors // max(around, 1)
        count = 1 << (most.bit_length() - 1) if most else 0
        if 2 <= count <= blocks // 2:
            yield count
