"""What lanes and warps hand on to each other to fold a tile along its last axis, or to scan it."""

from __future__ import annotations

from typing import NamedTuple

from blockbuster.costs.operands import LANES
from blockbuster.emit.tile.layouts import WORD, Layout, Layouts
from blockbuster.emit.tile.program import Let
from blockbuster.ir.types import Dim

SCANNED, AFTER_WARPS = 3, 3
"""Instructions of a scan for each element, with the prefix that is applied to it; and for each warp
whose total goes into a prefix. From what Triton 3 prints for sm_90: a lane scans the elements that
it has side by side, lanes hand on the totals, and each warp adds up those of the warps before."""


BETWEEN_WARPS = 2
"""How often a warp that folds with others touches shared memory for each row that its lanes hold:
to store what it has, and to read the result. With as long as all this takes if lanes that ask for
one bank wait in turn, softmax over 21 channels of 65536 places is predicted at 44, 76 and 137
microseconds of an H100 with 2, 4 and 8 warps; it took 36, 79 and 152 (without, 42 to 44 each;
bench/results/2026-11-28-h100-outside, schedules_of_rows.jsonl)."""


class Across(NamedTuple):
    """Shuffles of each lane, exchanges between warps, instructions of lanes besides.

    ``passed``: bytes that shared memory could pass while it passes what warps exchange.
    """

    shuffles: int
    exchanges: int
    instructions: int = 0
    passed: int = 0


def folded(stmt: Let, layouts: Layouts) -> Across:
    """For a reduction of rows."""
    lanes, layout = layouts.tiling.lanes(stmt.args[0]), layouts.known.get(stmt.args[0])
    if layout is None or not lanes:
        return Across(1, 0)
    kept, widths = layouts.tiling.lanes(stmt.target), _widths(lanes, layouts)
    dims = [dim for dim in lanes if dim not in kept]
    folds = layout.shuffles(widths, *dims)
    if layout.warps_along(*dims) == 1:
        return Across(folds, 0)
    touches = BETWEEN_WARPS * layout.conflicts(widths, *dims) * layouts.number
    return Across(folds, 2, passed=touches * LANES * WORD)


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
        layout.shuffles(widths, dim) * pieces,
        2 * pieces if warps > 1 else 0,
        SCANNED * elements + prefixes,
    )


def _pieces(layout: Layout, dim: Dim, width: int) -> int:
    """The runs of elements along ``dim`` that one lane holds."""
    held = sum(along == dim and 1 << at < width for along, at in layout.registers)
    return max(1, (1 << held) // layout.neighbours(dim))


def _widths(lanes: tuple[Dim, ...], layouts: Layouts) -> dict[Dim, int]:
    return {dim: layouts.tiling.block(dim) for dim in lanes}
