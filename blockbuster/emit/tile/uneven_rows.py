"""Arrays whose rows may begin or end at numbers that a compiler cannot tell to be even.

Triton copies 16 bytes at once only from addresses that it knows to be multiples of 16, and only if
a mask cannot end inside them. It tells numbers apart that are multiples of 16, and no others; rows
of 1000 float16 numbers are multiples of 8 apart, which is as good.
"""

from __future__ import annotations

from blockbuster.emit.tile.program import Buffer, Nest, Store, statements
from blockbuster.emit.tile.rings import arrivals
from blockbuster.emit.tile.tiling import Tiling
from blockbuster.ir.lengths import ONE
from blockbuster.ir.types import Dim, size_class
from blockbuster.ir.views import AxisView, Run, Share, Strided

KNOWN = 16
"""Multiples of it are told apart from other numbers anyway."""

Rows = dict[Dim, dict[Buffer, None]]
"""By size class of their last dims, arrays whose rows are read or written under a mask."""


def uneven_rows(nest: Nest, tiling: Tiling) -> Rows:
    """The arrays whose rows may end, or begin, at numbers that are no multiples of ``KNOWN``.

    Rows that are padded (pad_pitches.py) are such multiples apart.
    """
    found: Rows = {}
    stores = ((s.value, s.view) for s in statements(nest.body) if isinstance(s, Store))
    for tile, view in (*arrivals(nest.body), *stores):
        dims, buffer = rows_along(view.dims[-1]) if view.dims else (), view.buffer
        if not dims or dims[0] not in tiling.lanes(tile):
            continue
        dim = dims[0]
        lanes, plain = tiling.blocks[dim], buffer.pitch == 1 and not buffer.axes[-1].per_block
        if plain and lanes > 1 and (tiling.ragged(dim) or lanes % KNOWN):
            for own in dims:
                found.setdefault(size_class(own), {}).setdefault(buffer)
    return found


def single_rows(nest: Nest, tiling: Tiling) -> frozenset[Dim]:
    """The dims whose masks may end inside of 16 bytes, in kernels all of whose tiles are one row.

    Triton gives each lane 16 bytes that lie side by side, whatever the mask. Where the mask may end
    inside of them, the lane loads them element by element, and each time the elements of a warp
    lie 16 bytes apart. On an H200, x / (1 + |x|) of 16777215 float16 numbers took 69 microseconds
    that way, and 21 with lanes that take single neighbours. A tile with more axes is left out: by
    what lies side by side, Triton tells there which axis is innermost.
    """
    stores = (stmt.value for stmt in statements(nest.body) if isinstance(stmt, Store))
    tiles = [*(tile for tile, _ in arrivals(nest.body)), *stores]
    dims = {dim for tile in tiles for dim in tiling.lanes(tile)}
    rows = uneven_rows(nest, tiling)
    (dim,) = dims if len(dims) == 1 else (None,)
    return frozenset([dim] if dim and tiling.ragged(dim) and size_class(dim) in rows else [])


def rows_along(axis: AxisView) -> tuple[Dim, ...]:
    """The dim of rows along an axis; if it joins several, also the axis's own: rows end there, too.

    None for windows, and for slices from a number on, whose rows may begin anywhere; pieces of an
    axis begin at sizes or at quotients of them.
    """
    match axis:
        case str():
            return (axis,)
        case Strided(runs=(Run(step=step, share=Share()) as run,), start=start):
            return (run.dim, run.own) if step == ONE and not start.terms else ()
        case Strided(runs=(*others, Run(step=step, share=None) as run), padded=False, start=start):
            begins = [other.step for other in others] + [start] * bool(start.terms)
            pieces = bool(begins) and all(length.constant is None for length in begins)
            return (run.dim,) if step == ONE and pieces else ()
    return ()
