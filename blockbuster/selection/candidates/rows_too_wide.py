"""Whether whole rows leave a program no room: the reason why such a form is not taken."""

from __future__ import annotations

from dataclasses import replace

from blockbuster.emit.tile.program import Load, TileProgram, statements
from blockbuster.emit.tile.tiling import tiling_of
from blockbuster.selection.decisions.default_tiles import wide_lanes
from blockbuster.selection.priors import PRIORS


def rows_too_wide(program: TileProgram) -> str:
    """Why a nest with whole rows, its dims cut, would spill or read single columns, or ""."""
    for nest in program.nests:
        tiling = tiling_of(program, nest)
        for load in (s for s in statements(nest.body) if isinstance(s, Load)):
            for dim in load.view.sliced(load.target)[-1:]:
                few = not tiling.is_unit(dim) and tiling.blocks[dim] < PRIORS.lanes_along
                if few and dim not in tiling.whole and len(tiling.lanes(load.target)) > 1:
                    name = load.view.buffer.name
                    return f"{name} would be read {tiling.blocks[dim]} elements of {dim} at a time"
        if dims := wide_lanes(replace(program, nests=(nest,)), tiling):
            shown = ", ".join(f"{dim} {tiling.blocks[dim]}" for dim in dims)
            return f"a tile of {shown} leaves others no room in the registers of a program"
    return ""
