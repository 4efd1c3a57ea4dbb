"""Wider blocks of a kernel of dots, with as many more chunks of its loop: fewer loads, as many
programs.

Where a kernel has no more programs than there are processors, wider blocks alone leave some idle,
and more chunks alone only add partial results. Both together load less: a product of 128 rows with
8192 x 2048 weights took an H200 16.1 microseconds in blocks of 64 x 64 and 2 chunks, and 11.6 in
blocks of 128 x 64 and 4.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations

from blockbuster.emit.schedule.block import LEAST, dims_of_dots
from blockbuster.emit.schedule.chunk_loops import body_inside_grid
from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.emit.tile.program import For, Nest, statements
from blockbuster.emit.tile.tiling import power_of_two
from blockbuster.ir.types import Dim, size_class
from blockbuster.selection.combining import programs
from blockbuster.selection.recut_blocks import WIDEST, Recuts, joined, kernels_of_dots

FEWER = (1, 2, 4)
"""By how much the steps of the loop may be shorter, so that the wider blocks fit."""

Wider = tuple[Mapping[Dim, int], Mapping[Dim, int], Recuts]
"""Chunks by dim, lanes of dims in all nests, and blocks of single kernels."""


def wider_in_chunks(scheduled: Scheduled, recuts: Recuts) -> Iterator[Wider]:
    """For each kernel of dots of few programs: one or two dims of its result in blocks twice as
    wide, and as many times more chunks. ``recuts`` are those that ``scheduled`` has.
    """
    draft = scheduled.draft
    counts = {chunks.dim: chunks.count for chunks in draft.chunks}
    for number in kernels_of_dots(scheduled):
        nest = draft.nests[number - 1]
        if programs(scheduled, nest) > scheduled.target.processors:
            continue
        lanes = {block.dim: block.lanes for block in nest.blocks if not block.whole}
        outer = [
            loop.dim for loop in body_inside_grid(nest)[0] if _can_widen(loop.dim, scheduled, lanes)
        ]
        for walked in _summed(nest, scheduled):
            for wide in (*combinations(outer, 1), *combinations(outer, 2)):
                more = {**counts, walked: counts.get(walked, 1) << len(wide)}
                mine: Recuts = tuple((number, dim, 2 * lanes[dim]) for dim in wide)
                for fewer in FEWER:
                    step = lanes[walked] // fewer
                    if step >= LEAST:
                        others = _as_they_are(scheduled, number, walked, step)
                        rest = tuple(one for one in recuts if one[1] != walked)
                        yield more, {walked: step}, joined(joined(rest, others), mine)


def _summed(nest: Nest, scheduled: Scheduled) -> list[Dim]:
    """The dims over which loops of dots of ``nest`` run."""
    dots = dims_of_dots(nest, scheduled.draft.units)
    loops = (stmt for stmt in statements(nest.body) if isinstance(stmt, For) and not stmt.parallel)
    return [loop.dim for loop in loops if loop.dim in dots and loop.span is None]


def _can_widen(dim: Dim, scheduled: Scheduled, lanes: Mapping[Dim, int]) -> bool:
    if dim not in lanes:
        return False
    most = min(WIDEST, power_of_two(scheduled.sizes[size_class(dim)], LEAST))
    return 2 * lanes[dim] <= most


def _as_they_are(scheduled: Scheduled, number: int, dim: Dim, step: int) -> Recuts:
    """The blocks of a dim in the kernels of dots but one, where all others get ``step`` lanes."""
    found = list[tuple[int, Dim, int]]()
    for other in kernels_of_dots(scheduled):
        for block in scheduled.draft.nests[other - 1].blocks:
            if other != number and block.dim == dim and not block.whole and block.lanes != step:
                found.append((other, dim, block.lanes))
    return tuple(found)
