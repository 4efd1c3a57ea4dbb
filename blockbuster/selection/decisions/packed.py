"""Which arrays of the caller are copied first: those whose rows no wide copy takes, read often.

Rows of 1365 float16 numbers begin at odd multiples of 2 bytes, so that each load of a tile takes
its elements one by one, and none runs ahead. Constants are copied once for all calls, so it does
not count how often a call reads them.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from blockbuster.emit.schedule.block import BlockDims, Cut
from blockbuster.emit.schedule.on_grid import body_inside_grid
from blockbuster.emit.schedule.overlap import Overlap
from blockbuster.emit.schedule.pack import Pack
from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.emit.schedule.site import Site, statements_of
from blockbuster.emit.schedule.warps import Warps
from blockbuster.emit.tile.dtypes import MEMORY
from blockbuster.emit.tile.layouts import VECTOR
from blockbuster.emit.tile.program import Issue, Load, Nest, View
from blockbuster.emit.tile.rings import arrivals
from blockbuster.emit.tile.tiling import tiling_of
from blockbuster.emit.tile.uses import Uses
from blockbuster.ir.types import Dim, size_class
from blockbuster.selection.priors import PRIORS

BLOCK, OVERLAP, PACK, WARPS = BlockDims(), Overlap(), Pack(), Warps()


def packed(scheduled: Scheduled) -> Scheduled:
    """``scheduled`` with copies of such arrays, before the first nest of dots that reads them."""
    while True:
        odd = (found for found in _read_often(scheduled) if _is_odd(scheduled, found[1]))
        made = next(filter(None, (_copied(scheduled, *found) for found in odd)), None)
        if made is None:
            return scheduled
        scheduled = made


def _copied(scheduled: Scheduled, site: Site, view: View) -> Scheduled | None:
    """``scheduled`` with a copy of an array; None if it cannot be cut as its copy is."""
    cuts = tuple(Cut(dim, lanes) for dim, lanes in _blocks(scheduled, view).items())
    made, copying = PACK.apply(scheduled, site), Site(site.nest)
    if BLOCK.why_not(made, copying, cuts=cuts):
        return None
    made = WARPS.apply(BLOCK.apply(made, copying, cuts=cuts), copying, count=PRIORS.usual_warps)
    for early in (copying, Site(site.nest + 1)):
        if not OVERLAP.why_not(made, early):
            made = OVERLAP.apply(made, early)
    return made


def told_apart(scheduled: Scheduled) -> Iterator[tuple[Dim, int]]:
    """Dims along which it counts whether rows begin where wide copies can, and by what number of
    elements they must be divisible for that.
    """
    for _, view in _read_often(scheduled):
        yield size_class(_last(view)), VECTOR // MEMORY[view.buffer.dtype].bytes


def _read_often(scheduled: Scheduled) -> Iterator[tuple[Site, View]]:
    """The loads of arrays of the caller that are worth a copy if it helps: of many blocks each."""
    for site, stmt in statements_of(scheduled.draft):
        if isinstance(stmt, Load | Issue) and not PACK.why_not(scheduled, site):
            if not set(scheduled.draft.whole).isdisjoint(stmt.view.runs):
                continue
            nest = scheduled.draft.nests[site.nest - 1]
            once = stmt.view.buffer.name in scheduled.draft.constants
            often = once or _reads(nest, stmt.view, scheduled) >= PRIORS.reads_worth_a_copy
            if often and _feeds_a_dot(nest, stmt.view, scheduled):
                yield site, stmt.view


def _blocks(scheduled: Scheduled, view: View) -> dict[Dim, int]:
    """The blocks of an array's copy: such as other nests have, so that classes of sizes tell them
    already. The last dim is cut into the widest that make no tile too large.
    """
    known: dict[Dim, set[int]] = {}
    for nest in scheduled.draft.nests:
        for block in nest.blocks:
            known.setdefault(size_class(block.dim), set()).add(block.lanes)
    rows, columns = view.runs
    fewest = min(known[size_class(rows)])
    fits = [n for n in known[size_class(columns)] if n * fewest <= PRIORS.copied_elements]
    return {rows: fewest, columns: max(fits, default=min(known[size_class(columns)]))}


def _is_odd(scheduled: Scheduled, view: View) -> bool:
    """True if not all rows of an array begin where wide copies can."""
    columns = scheduled.sizes[size_class(_last(view))]
    return columns * MEMORY[view.buffer.dtype].bytes % VECTOR != 0


def _last(view: View) -> Dim:
    last = view.dims[-1]
    assert isinstance(last, str), "pack takes plain axes"
    return last


def _reads(nest: Nest, view: View, scheduled: Scheduled) -> int:
    """How often the programs of ``nest`` read the array in all."""
    tiling = tiling_of(scheduled.draft, nest)
    dims = [loop.dim for loop in body_inside_grid(nest)[0] if loop.dim not in view.dims]
    return prod(-(-scheduled.sizes[size_class(dim)] // tiling.block(dim)) for dim in dims)


def _feeds_a_dot(nest: Nest, view: View, scheduled: Scheduled) -> bool:
    uses = Uses(nest, tiling_of(scheduled.draft, nest))
    tiles = (tile for tile, read in arrivals(nest.body) if read.buffer == view.buffer)
    return any(uses.only_in_dots(tile) for tile in tiles)
