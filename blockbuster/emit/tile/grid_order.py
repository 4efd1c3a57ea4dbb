"""The order in which a grid starts its programs: row by row, in groups, blocks last first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np

from blockbuster.emit.tile.known_bounds import Numbers
from blockbuster.emit.tile.program import Nest
from blockbuster.ir.types import Dim


def programs_in_order(nest: Nest, counts: Sequence[int]) -> Numbers:
    """For each program of the grid of ``nest``, in order, its block of each dim: [programs, dims].

    ``counts``: the blocks of each dim of the grid. The last dim runs fastest, unless in groups.
    """
    number = np.arange(prod(counts))
    found = np.stack(np.unravel_index(number, (*counts, 1)), axis=1)[:, :-1]
    if nest.group is not None and grouped_dims(nest):
        at = nest.grid.index(nest.group.dim)
        here = slice(at, at + 2)
        found[:, here] = _grouped(found[:, here], counts[here], nest.group.blocks)
    for at, (dim, count) in enumerate(zip(nest.grid, counts, strict=True)):
        if dim in nest.last_first:
            found[:, at] = count - 1 - found[:, at]
    return found


def walked(nest: Nest, counts: Mapping[Dim, int]) -> tuple[tuple[Dim, int], ...]:
    """The blocks that the grid walks, outermost first; a dim in groups is walked twice.

    First its groups, and inside the next dim the blocks of one.
    """
    loops = [(dim, counts[dim]) for dim in nest.grid]
    if nest.group is not None and grouped_dims(nest):
        at, size = nest.grid.index(nest.group.dim), nest.group.blocks
        dim, count = loops[at]
        loops[at : at + 2] = [(dim, -(-count // size)), loops[at + 1], (dim, min(count, size))]
    return tuple(loops)


def grouped_dims(nest: Nest) -> tuple[Dim, ...]:
    """The dim whose blocks the grid takes in groups, and the next one of the grid; or none."""
    if nest.group is None or nest.group.dim not in nest.grid[:-1]:
        return ()
    at = nest.grid.index(nest.group.dim)
    return nest.grid[at : at + 2]


def _grouped(places: Numbers, counts: Sequence[int], size: int) -> Numbers:
    """What ``tl.swizzle2d`` makes of places that follow one another row by row."""
    rows, columns = counts
    number = places @ (columns, 1)
    first = number // (size * columns) * size
    height = np.minimum(rows - first, size)
    inside = number % (size * columns)
    return np.stack((first + inside % height, inside // height), axis=1)


def turned_at_once(nest: Nest) -> tuple[Dim, ...]:
    """The dims whose blocks are counted from the last as they are; those of groups are later."""
    return tuple(dim for dim in nest.last_first if dim not in grouped_dims(nest))
