"""How many cache lines a tile touches: a short row takes a whole line.

Processors ask the cache for lines. A tile whose rows are shorter than a line takes as many requests
as a tile with whole lines.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from math import ceil, gcd, prod

from blockbuster.emit.tile.dtypes import MEMORY
from blockbuster.emit.tile.extents import Extents
from blockbuster.emit.tile.layouts import Layouts, inward
from blockbuster.emit.tile.program import Nest, Tile, TileProgram, View
from blockbuster.emit.tile.tiling import Tiling, tiling_of
from blockbuster.emit.tile.told_sizes import with_told
from blockbuster.ir.lengths import ONE, ZERO
from blockbuster.ir.types import Dim
from blockbuster.ir.views import Run, Strided, array_dim, is_padded, runs_along

LINE, SECTOR = 128, 32
"""Bytes of a line, and of the parts of it that are moved if they are asked for."""

MASKED = 2
"""Instructions of a lane for a mask of what it moves at once: to compare and to keep the answer.

In machine code for gelu by hand of rows of 8191 they are 146 for 32 loads and 32 stores."""

SHIFTED, TESTED = 4, 4
"""Instructions of a lane for what it moves at once from windows, in a loop over their taps: to add
how far a tap shifts its place, and to test that each padded axis has an element there.

In machine code for convolutions (Triton 3.6, sm_90) each 16 bytes that a lane loads ahead take 5 in
a product, 9 in windows of two axes, and 16 to 18 in padded ones.
"""

NEAR = 1 << 14
"""Bytes of an array that a processor keeps by itself (in its L1 cache), where all programs read it.
"""

VECTOR = 16
"""Bytes that a lane moves at once, at most."""

LEAST_AHEAD = 4
"""Bytes that a copy which runs ahead takes at once, at least: elements of rows that begin at odd
multiples of two are loaded one by one, and none is on its way while others are used."""


def in_rows(view: View) -> View:
    """A view whose last axis has the elements of rows: axes of one element stand behind them in the
    filters of one pixel. One of every other element of rows that are accessed whole is as one of
    half as long rows.
    """
    axes, count = view.buffer.axes, len(view.dims)
    while count > 1 and axes[count - 1].dim is None and array_dim(view.dims[count - 1]) is None:
        count -= 1
    if count < len(axes):
        buffer = replace(view.buffer, axes=axes[:count])
        view = replace(view, buffer=buffer, dims=view.dims[:count])
    if not view.paired:
        return view
    axis = view.dims[-1]
    assert isinstance(axis, Strided)
    run = replace(axis.runs[0], step=ONE)
    return replace(view, dims=(*view.dims[:-1], replace(axis, runs=(run,), start=ZERO)))


def copied_at_once(view: View, tile: Tile, tiling: Tiling, extents: Extents) -> int:
    """Bytes of a tile that a lane moves at once: neighbours, from where wide copies can begin.

    Each row of an array of the caller begins where the row before it ends.
    """
    buffer = view.buffer
    width = MEMORY[buffer.dtype].bytes
    wide = min(VECTOR, width * _dense(view, tile, tiling, extents))
    begins = _begins(view, tile, extents)
    wide = min(wide, width * (begins & -begins) or wide)
    last = buffer.axes[-1].dim if len(buffer.axes) > 1 and buffer.pitch == 1 else None
    if last is None or len(tiling.lanes(tile)) < 2:
        return wide
    row = width * extents.size(last)
    return min(wide, row & -row) or wide


def layouts_at(program: TileProgram, nest: Nest, target: str, extents: Extents) -> Layouts:
    """The layouts of a nest at the sizes of ``extents``: where rows of a tile begin at odd places,
    a lane takes one element, 32 lanes take 32 neighbours, and warps lie along the rows, too.
    """
    tiling = tiling_of(program, nest)

    def at_once(view: View, tile: Tile) -> int:
        wide = copied_at_once(in_rows(view), tile, tiling, extents)
        return max(wide // 2, 1) if view.paired else wide

    return Layouts(nest, tiling, target, at_once, with_told(nest, tiling, extents.size))


def _dense(view: View, tile: Tile, tiling: Tiling, extents: Extents) -> int:
    """Lanes of a tile that lie next to each other in memory, and that one test of a mask is for.

    Triton finds out how many neighbours a mask keeps together where it compares lanes that all
    follow one another; places of a padded axis that are remainders of a joined dim do not. Dilated
    convolutions of 32 x 256 x 14 x 14 load each element by itself (Triton 3.6 and 3.9, sm_90), so
    none is on its way ahead, and took an H200 34 microseconds; predicted are 26, and were 19.
    """
    last = _last_run(view, tile)
    if last is None or last.step != ONE or (last.share is not None and is_padded(view.dims[-1])):
        return 1
    lanes = tiling.block(last.dim)
    return lanes if last.share is None else min(lanes, extents.size(last.own))


def _last_run(view: View, tile: Tile) -> Run | None:
    """How the innermost dim of a tile runs along the last axis of an array."""
    if not view.dims or view.buffer.axes[-1].per_block:
        return None
    runs = reversed(runs_along(view.dims[-1]))
    return next((run for run in runs if run.dim in tile.axes), None)


def is_near(view: View, extents: Extents) -> bool:
    """True for what all programs read, so little that a processor keeps it."""
    if set(view.runs) & set(extents.nest.grid):
        return False
    return MEMORY[view.buffer.dtype].bytes * prod(map(extents.size, view.runs)) <= NEAR


def indexed(view: View, tile: Tile, loops: Collection[Dim]) -> int:
    """Instructions of a lane for the places of what it moves at once, inside of ``loops``."""
    along = [(axis, {run.dim for run in runs_along(axis)}) for axis in view.dims]
    inside = [(axis, dims) for axis, dims in along if dims & set(loops)]
    shifted = any(isinstance(axis, Strided) and dims & set(tile.axes) for axis, dims in inside)
    return SHIFTED * shifted + TESTED * sum(is_padded(axis) for axis, _ in inside)


def places(view: View, tile: Tile, loops: Collection[Dim], layouts: Layouts, moves: int) -> int:
    """The instructions of all lanes that find the places of a tile of windows, inside of ``loops``.

    A lane moves what it has in so many ``moves`` of all lanes; where several of them lie in other
    axes than those of the windows, it finds their place once. Where lanes lie along pixels and each
    holds 64 channels, those of a 3 x 3 convolution take 28 instructions, not 16 each.
    """
    each = indexed(view, tile, loops)
    if not each or tile not in layouts.known:
        return each * moves
    windows = ({run.dim for run in axis.runs} for axis in view.dims if isinstance(axis, Strided))
    along = set[Dim]().union(*(dims for dims in windows if dims & set(loops)))
    held = sum(dim not in along for dim, _ in layouts.known[tile].registers)
    last = _last_run(view, tile)
    together = 1 if last is None or last.dim in along else layouts.known[tile].neighbours(last.dim)
    return each * max(1, moves * together >> held)


def requests(
    view: View, tile: Tile, layouts: Layouts, extents: Extents, *, columns: bool = False
) -> int:
    """How often an access asks for a line: once for each that it touches, and again wherever lanes
    load elements one by one that are no neighbours, or begin where no wide load can.

    A lane holds as many elements of a row as the widest access to memory moves at once, and lanes
    that are so far apart ask for other lines each. With eight elements to a lane, a pool of pairs
    of 16 x 64 x 112 x 112 numbers took an H100 32 microseconds; the closed form says 25, and 6 if
    lines count once. Convolutions took it 303 (3 x 3 windows of 56 x 56), 300 (dilated) and 120
    (strided): 292, 271 and 110, or 209, 209 and 54.
    """
    touched = pieces(view, tile, extents, LINE, columns=columns)
    axis, last = view.dims[-1] if view.dims else None, _last_run(view, tile)
    if last is None or not isinstance(axis, Strided) or tile not in layouts.known:
        return touched
    width, step = MEMORY[view.buffer.dtype].bytes, last.step.constant
    at_once = copied_at_once(view, tile, layouts.tiling, extents)
    held = width * int(step or 1) * layouts.known[tile].neighbours(last.dim)
    if held <= at_once:
        return touched
    elements = prod(_lanes(dim, extents) for dim in tile.axes)
    return max(touched, elements * width * min(held, LINE) // (at_once * LINE))


def _begins(view: View, tile: Tile, extents: Extents) -> int:
    """A number that divides the place along the last axis at which each row of a tile begins; 0 if
    all begin at its first element. Rows of windows begin one element after another.
    """
    axis = view.dims[-1] if view.dims else None
    if not isinstance(axis, Strided):
        return 0
    steps = (run.step.value(extents.sizes) for run in axis.runs if run.dim not in tile.axes)
    return gcd(axis.start.value(extents.sizes), *steps)


def masks(tile: Tile, tiling: Tiling, at_once: int) -> int:
    """Instructions of lanes for the masks of an access: a test for as many elements along a ragged
    dim as a lane moves at once.

    With blocks of 1 x 4096, gelu by hand of rows of 8191 took an H100 237 microseconds, with blocks
    of 8 x 512 111: each lane keeps 32 tests, or 4.
    """
    ragged = (dim for dim in tile.axes if tiling.ragged(dim))
    return sum(MASKED * tiling.block(dim) // max(at_once, 1) for dim in ragged)


def is_across(view: View, tile: Tile, tiling: Tiling) -> bool:
    """True if the lanes of a tile's rows are not neighbours in memory."""
    lanes = tiling.lanes(tile)
    return len(lanes) == 2 and inward(view, tile)[-1] != lanes[-1]


def pieces(view: View, tile: Tile, extents: Extents, size: int, *, columns: bool = False) -> int:
    """How many pieces of ``size`` bytes a tile of an access touches, in an array without gaps.
    ``columns``: it lies in registers with its two axes exchanged.

    From the innermost axis outwards: elements that lie no further apart than a piece make one
    region; others are regions of their own. Rows of an odd length begin anywhere in a piece, so a
    region touches more pieces than it would fill: rows of 16 float16 numbers 1.9 sectors each.
    Where no elements of the tile are neighbours, lanes of a warp run along its first axis (as
    Triton 3.6 lays them; later versions take the last), and ask for a piece each. With filters of
    128 x 64 x 2 x 2 read as columns, an up-convolution of 16 x 128 x 28 x 28 took an H100 28
    microseconds; the closed form says 20, or 8 for lanes along the filters.
    """
    width = stride = MEMORY[view.buffer.dtype].bytes
    region, regions = float(width), 1.0
    begins = gcd(size, width * _begins(view, tile, extents))
    strides = dict[Dim, int]()
    for axis, buffer_axis in zip(reversed(view.dims), reversed(view.buffer.axes), strict=True):
        whole = array_dim(axis)
        if whole is None:
            continue  # one entry
        runs = [] if buffer_axis.per_block else [r for r in runs_along(axis) if r.dim in tile.axes]
        lanes: float = 1
        for run in runs:
            lanes *= _lanes_along(run, extents)
            strides.setdefault(run.dim, stride)
        if stride <= max(size, region):
            region += (lanes - 1) * stride
        else:
            regions *= lanes
            begins = gcd(begins, stride)
        stride *= extents.trips(whole) if buffer_axis.per_block else extents.size(whole)
    long = [dim for dim in tile.axes if dim in strides and _lanes(dim, extents) > 1]
    if long and min(strides[dim] for dim in long) > width:
        elements = prod(_lanes(dim, extents) for dim in long)
        return -(-elements * min(strides[long[-1 if columns else 0]], size) // size)
    return ceil(regions * (begins * ceil(region / begins) + size - begins) / size)


def _lanes_along(run: Run, extents: Extents) -> float:
    """How many places along its axis the lanes of a run have; of a joined dim, on average."""
    lanes = _lanes(run.dim, extents)
    if run.share is None:
        return lanes
    return min(max(lanes / run.share.under.value(extents.sizes), 1.0), extents.size(run.own))


def _lanes(dim: Dim, extents: Extents) -> int:
    return min(extents.blocks[dim], extents.size(dim))
