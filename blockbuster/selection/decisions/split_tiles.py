"""Tiles of products of float32 that are split for the matrix units: tall and narrow ones.

Each warp takes its operands apart, two rows of matrix tiles at a time, and shares the other side
with the others. The closed form does not tell these tiles apart; measured on an H200, in
microseconds, 128 x 32 in steps of 32 beside 128 x 64 in eight warps and 64 x 64: a product of 4096
in all dims 2563, 3153 and 3708; of 2048 x 1024 x 1024 85.6, 99.4 and 122.8; of 1024 44, 56 and 74.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from blockbuster.emit.tile.program import Let, TileProgram, statements
from blockbuster.emit.tile.tiling import Tiling
from blockbuster.emit.tile.uses import is_matrix_dot
from blockbuster.ir.types import Dim, size_class
from blockbuster.selection.priors import PRIORS


def split_tiles(program: TileProgram, sizes: Mapping[Dim, int], processors: int) -> dict[Dim, int]:
    """Lanes of the dims of the only dot of ``program``, if it is split; else none.

    None either where so few programs come of it that processors would be idle: those were not
    measured. ``sizes``: by size class.
    """
    tiling = Tiling({}, program.units)
    lets = (s for nest in program.nests for s in statements(nest.body) if isinstance(s, Let))
    dots = [let for let in lets if is_matrix_dot(let, tiling)]
    if len(dots) != 1 or not dots[0].split:
        return {}
    (dot,) = dots
    narrow = {dim: PRIORS.split_columns for arg in dot.args for dim in tiling.lanes(arg)}
    found = narrow | {tiling.lanes(dot.target)[0]: PRIORS.split_rows}
    blocks = (-(-sizes[size_class(dim)] // found[dim]) for dim in tiling.lanes(dot.target))
    return found if prod(blocks) >= processors else {}
