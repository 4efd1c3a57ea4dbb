"""What lanes and warps hand on to each other to fold a tile along its last axis, or to scan it."""

from __future__ import annotations

from typing import NamedTuple

from blockbuster.emit.tile.layouts import Layout, Layouts
from blockbuster.emit.tile.program import Let
from blockbuster.ir.types import Dim

SCANNED, AFTER_WARPS = 3, 3
"""Instructions of a scan for each element, with the prefix that is applied to it; and for each warp
whose total goes into a prefix. From what Triton 3 prints for sm_90: a lane scans the elements that
it has side by side, lanes hand on the totals, and each warp adds up those of the warps before."""


class Across(NamedTuple):
    """Shuffles of each lane, exchanges between warps, and instructions of lanes besides."""

    shuffles: int
    exchanges: int
    instructions: int = 0


def folded(stmt: Let, layouts: Layouts) -> Across:
    """For a reduction of rows."""
    lanes, layout = layouts.tiling.lanes(stmt.args[0]), layouts.known.get(stmt.args[0])
    if layout is None or not lanes:
        return Across(1, 0)
    folds = layout.shuffles(lanes[-1], _widths(lanes, layouts))
    return Across(folds, 2 if layout.warps_along(lanes[-1]) > 1 else 0)


def scanned(stmt: Let, layouts: Layouts) -> Across:
    """For a scan: elements side by side in one lane are a piece, and each piece has a prefix."""
    lanes, layout = layouts.tiling.lanes(stmt.args[0]), layouts.known.get(stmt.args[0])
    elements = layouts.lanes(*lanes)
    if layout is None or not lanes:
        return Across(1, 0, SCANNED * elements)
    dim, widths = lanes[-1], _widths(lanes, layouts)
    pieces = _pieces(layout, dim, widths[dim])
    warps = layout.warps_along(dim)
    prefixes = AFTER_WARPS * warps * (elements // layout.neighbours(dim)) if warps > 1 else 0
    return Across(
        layout.shuffles(dim, widths) * pieces,
        2 * pieces if warps > 1 else 0,
        SCANNED * elements + prefixes,
    )


def _pieces(layout: Layout, dim: Dim, width: int) -> int:
    """The runs of elements along ``dim`` that one lane holds."""
    held = sum(along == dim and 1 << at < width for along, at in layout.registers)
    return max(1, (1 << held) // layout.neighbours(dim))


def _widths(lanes: tuple[Dim, ...], layouts: Layouts) -> dict[Dim, int]:
    return {dim: layouts.tiling.block(dim) for dim in lanes}
