"""Wider blocks of a kernel of dots, with as many more chunks of its loop: fewer loads, as many
programs.

Where a kernel has no more programs than there are processors, wider blocks alone leave some idle,
and more chunks alone only add partial results. Both together load less. Blocks grow along the dim
for whose blocks the largest array is read again: a product of 128 rows with 14336 x 4096 weights
took an H200 47.0 microseconds in blocks of 64 x 64, 38.6 in blocks of 128 x 64 and 2 chunks; in
blocks of 64 x 128 the whole program took as long as before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod

from blockbuster.emit.schedule.block import LEAST, dims_of_dots
from blockbuster.emit.schedule.on_grid import body_inside_grid
from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.emit.tile.dataflow import stored
from blockbuster.emit.tile.dtypes import MEMORY
from blockbuster.emit.tile.program import Buffer, For, Issue, Load, Nest, statements
from blockbuster.emit.tile.tiling import power_of_two
from blockbuster.ir.types import Dim, size_class
from blockbuster.selection.decisions.combining import programs
from blockbuster.selection.nearby.recut_blocks import Recuts, joined, kernels_of_dots
from blockbuster.selection.priors import PRIORS

Wider = tuple[Mapping[Dim, int], Mapping[Dim, int], Recuts]
"""Chunks by dim, lanes of dims in all nests, and blocks of single kernels."""


def wider_in_chunks(scheduled: Scheduled, recuts: Recuts) -> Iterator[Wider]:
    """For each kernel of dots of few programs: blocks twice as wide, and twice as many chunks.

    ``recuts`` are those that ``scheduled`` has.
    """
    draft = scheduled.draft
    counts = {chunks.dim: chunks.count for chunks in draft.chunks}
    for number in kernels_of_dots(scheduled):
        nest = draft.nests[number - 1]
        wide = _read_again(nest, scheduled)
        if wide is None or programs(scheduled, nest) > scheduled.target.processors:
            continue
        lanes = {block.dim: block.lanes for block in nest.blocks}
        for walked in _summed(nest, scheduled):
            if not _parts_are_small(nest, scheduled, 2 * counts.get(walked, 1)):
                continue
            for step in (lanes[walked] // fewer for fewer in PRIORS.shorter_steps):
                if step < LEAST:
                    continue
                others = _as_they_are(scheduled, number, walked, step)
                rest = tuple(one for one in recuts if one[1] != walked)
                made = joined(joined(rest, others), ((number, wide, 2 * lanes[wide]),))
                yield {**counts, walked: 2 * counts.get(walked, 1)}, {walked: step}, made


def _parts_are_small(nest: Nest, scheduled: Scheduled, chunks: int) -> bool:
    """True if the results of ``nest`` in so many chunks are few beside what it loads."""
    numbers = [one.number for one in scheduled.draft.chunks]
    parts = 0
    for buffer in stored(nest.body):
        dims = (a.dim for a in buffer.axes if a.dim is not None and a.dim not in numbers)
        results = prod(scheduled.sizes[size_class(dim)] for dim in dims)
        parts += chunks * results * MEMORY["float32"].bytes
    loads = (stmt for stmt in statements(nest.body) if isinstance(stmt, Load | Issue))
    largest = max(_bytes(load.view.buffer, scheduled) for load in loads)
    return 2 * PRIORS.partial_results_part * parts <= largest


def _read_again(nest: Nest, scheduled: Scheduled) -> Dim | None:
    """The dim of the grid for whose blocks most bytes are read again, if its blocks can grow."""
    lanes = {block.dim: block.lanes for block in nest.blocks if not block.whole}
    again = {
        loop.dim: max((_bytes(b, scheduled) for b in _without(nest, loop.dim)), default=0)
        for loop in body_inside_grid(nest)[0]
        if _can_widen(loop.dim, scheduled, lanes)
    }
    return max(again, key=lambda dim: again[dim], default=None)


def _without(nest: Nest, dim: Dim) -> Iterator[Buffer]:
    """The arrays that ``nest`` loads by no place along ``dim``."""
    for stmt in statements(nest.body):
        if isinstance(stmt, Load | Issue) and dim not in stmt.view.runs:
            yield stmt.view.buffer


def _bytes(buffer: Buffer, scheduled: Scheduled) -> int:
    dims = (axis.dim for axis in buffer.axes if axis.dim is not None)
    elements = prod(scheduled.sizes.get(size_class(dim), 1) for dim in dims)
    return elements * MEMORY[buffer.dtype].bytes


def _summed(nest: Nest, scheduled: Scheduled) -> list[Dim]:
    """The dims over which loops of dots of ``nest`` run."""
    dots = dims_of_dots(nest, scheduled.draft.units)
    loops = (stmt for stmt in statements(nest.body) if isinstance(stmt, For) and not stmt.parallel)
    return [loop.dim for loop in loops if loop.dim in dots and loop.span is None]


def _can_widen(dim: Dim, scheduled: Scheduled, lanes: Mapping[Dim, int]) -> bool:
    if dim not in lanes:
        return False
    most = min(PRIORS.widest_dot_lanes, power_of_two(scheduled.sizes[size_class(dim)], LEAST))
    return 2 * lanes[dim] <= most


def _as_they_are(scheduled: Scheduled, number: int, dim: Dim, step: int) -> Recuts:
    """The blocks of a dim in the kernels of dots but one, where all others get ``step`` lanes."""
    found = list[tuple[int, Dim, int]]()
    for other in kernels_of_dots(scheduled):
        for block in scheduled.draft.nests[other - 1].blocks:
            if other != number and block.dim == dim and not block.whole and block.lanes != step:
                found.append((other, dim, block.lanes))
    return tuple(found)
