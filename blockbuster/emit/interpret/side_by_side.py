"""Which parallel loops of a nest can be run at once, all their iterations side by side.

The iterations of a loop over batch or heads do the same to different elements. So the interpreter
runs the body once, and tiles get a leading axis for the iterations. All iterations must have the
same shapes and loop bounds. If the nest both stores and loads an array, each iteration must have a
part of the array to itself; races between iterations then show in the places that they write.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from blockbuster.emit.tile.dataflow import bounding, conflicts, defined, operands
from blockbuster.emit.tile.program import (
    ACCESSES,
    BlockOf,
    Buffer,
    For,
    Iota,
    Issue,
    Let,
    Nest,
    Tile,
    statements,
)
from blockbuster.interp.layout import Array
from blockbuster.interp.semantics import Shape
from blockbuster.ir.types import Dim


def side_by_side(nest: Nest, blocks: Mapping[Dim, int]) -> frozenset[Dim]:
    """The dims over which all iterations of a parallel loop, or of the grid, can run side by side.

    Their blocks have one element, no tile has them as an axis, and no index is of them.
    """
    body = tuple(statements(nest.body))
    bounds = bounding(nest.body)
    if any(defined(s) in bounds and not isinstance(s, Let | Iota | BlockOf) for s in body):
        return frozenset()  # what memory holds decides how often a loop runs
    loops = [s for s in body if isinstance(s, For)]
    apart = {dim for tile in _tiles(nest) for dim in tile.axes}
    apart |= {s.dim for s in body if isinstance(s, Iota | BlockOf)}
    apart |= {loop.chunk for loop in loops if loop.chunk is not None}
    apart |= {loop.dim for loop in loops if loop.span is not None or loop.chunk is not None}
    apart |= {s.dim for s in loops if any(isinstance(inner, Issue) for inner in s.body)}
    parallel = dict.fromkeys((*nest.grid, *(loop.dim for loop in loops if loop.parallel)))
    alike = [dim for dim in parallel if blocks[dim] == 1 and dim not in apart]
    shared = conflicts(nest.body)
    return frozenset(d for d in alike if all(_cuts(d, buffer, nest) for buffer in shared))


def _cuts(dim: Dim, buffer: Buffer, nest: Nest) -> bool:
    """Whether all accesses of a nest to a buffer run along one of its axes under ``dim``."""
    accesses = (s.view for s in statements(nest.body) if isinstance(s, ACCESSES))
    found = [view.dims for view in accesses if view.buffer == buffer]
    return any(all(along == dim for along in dims) for dims in zip(*found, strict=True))


def _tiles(nest: Nest) -> list[Tile]:
    """All tiles of a nest."""
    found: dict[Tile | None, None] = {}
    for stmt in statements(nest.body):
        own = (stmt.tile,) if isinstance(stmt, Issue) else ()
        found.update(dict.fromkeys((defined(stmt), *operands(stmt), *own)))
    return [tile for tile in found if tile is not None]


def spread(array: Array, rank: int, stack: Shape) -> Array:
    """A tile of ``rank`` axes for each iteration of ``stack``, its leading axes.

    Where it was made, fewer loops were run side by side, or no iteration made a difference.
    """
    lead = array.ndim - rank
    if array.shape[:lead] == stack:
        return array
    ones = (1,) * (len(stack) - lead)
    shape = (*array.shape[:lead], *ones, *array.shape[lead:])
    return np.broadcast_to(array.reshape(shape), (*stack, *array.shape[lead:]))
