"""Tiles of products of float32 that are split for the matrix units: tall and narrow ones.

Each warp takes its operands apart, two rows of matrix tiles at a time, and shares the other side
with the others. The closed form does not tell these tiles apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from blockbuster.emit.tile.program import TileProgram
from blockbuster.emit.tile.tiling import Tiling
from blockbuster.emit.tile.uses import matrix_dots
from blockbuster.ir.types import Dim, size_class
from blockbuster.selection.priors import PRIORS


def split_tiles(program: TileProgram, sizes: Mapping[Dim, int], processors: int) -> dict[Dim, int]:
    """Lanes of the dims of the only dot of ``program``, if it is split; else none.

    None either where so few programs come of it that processors would be idle: those were not
    measured. ``sizes``: by size class.
    """
    tiling = Tiling({}, program.units)
    dots = [dot for nest in program.nests for dot in matrix_dots(nest.body, tiling)]
    if len(dots) != 1 or not dots[0].split:
        return {}
    (dot,) = dots
    narrow = {dim: PRIORS.split_columns for arg in dot.args for dim in tiling.lanes(arg)}
    found = narrow | {tiling.lanes(dot.target)[0]: PRIORS.split_rows}
    blocks = (-(-sizes[size_class(dim)] // found[dim]) for dim in tiling.lanes(dot.target))
    return found if prod(blocks) >= processors else {}
