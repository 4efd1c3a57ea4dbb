"""How matrix units take the operands of a dot: bytes of shared memory, and instructions.

NVIDIA's instructions, by architecture: from sm_90 on, four warps together multiply 64 rows with
operands in shared memory; before, and for fewer rows, a warp multiplies 16 rows by 8 columns by 16
of what is in registers, loaded from shared memory first. Float32 is multiplied by the vector units.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from blockbuster.emit.tile.dataflow import defined, operands
from blockbuster.emit.tile.dtypes import MEMORY
from blockbuster.emit.tile.program import Fold, Let, Nest, Tile, statements
from blockbuster.emit.tile.result_dtypes import FLOAT
from blockbuster.emit.tile.rings import arrivals
from blockbuster.emit.tile.tiling import Tiling
from blockbuster.emit.tile.uses import is_matrix_dot

HOPPER = "sm_90"

GROUP, ROWS = 4, 64
"""Warps that multiply together on sm_90, and the rows that they take at once."""

STEP = 16
"""Rows, and elements of the sum, that one instruction of a warp takes before sm_90."""

COLUMNS = 8
"""Columns that it takes."""

LANES = 32
"""Lanes of a warp."""

READ = 16
"""Bytes of a lane that one instruction reads from shared memory."""


@dataclass(frozen=True)
class Dot:
    """One dot: its unit, bytes that are read from shared memory, instructions of lanes.

    ``apart``: each warp multiplies by itself, on units that four of them could use together.
    """

    unit: str
    fetched: int
    instructions: int
    apart: bool = False


def together(rows: int, warps: int, dtype: str, target: str) -> bool:
    """True if four warps multiply together, with operands in shared memory."""
    return target == HOPPER and rows >= ROWS and warps % GROUP == 0 and dtype != FLOAT


def dot_of(stmt: Let, tiling: Tiling, nest: Nest, target: str) -> Dot:
    """What one run of a dot of two blocks takes."""
    left, right = stmt.args
    warps = nest.warps
    rows, columns = (tiling.block(dim) for dim in tiling.lanes(stmt.target))
    depth = prod(tiling.block(d) for d in tiling.lanes(left)) // rows
    sizes = [_bytes(tile, tiling) for tile in (left, right)]
    held = from_registers(left, nest)
    if together(rows, warps, left.dtype, target):
        slices, groups = -(-rows // ROWS), warps // GROUP
        beside = max(1, groups // slices)
        fetched = sizes[1] * slices + (0 if held else sizes[0] * beside)
        steps = slices * beside * -(-depth // STEP)
        return Dot("matrix", fetched, steps * GROUP * LANES)
    down = min(warps, -(-rows // STEP))
    across = max(1, warps // down)
    fetched = sizes[1] * down + (0 if held else sizes[0] * across)
    if left.dtype == FLOAT:
        return Dot("vector", fetched, rows * columns * depth + fetched // READ)
    steps = -(-rows // STEP) * -(-columns // COLUMNS) * -(-depth // STEP)
    apart = target == HOPPER
    return Dot("matrix", fetched, steps * LANES + fetched // READ, apart)


def crowding(nest: Nest, tiling: Tiling) -> int:
    """How many warps compute the same rows: where a dot reads what another dot became.

    Triton then lays all warps down the rows, and each has ``STEP`` rows at least.
    """
    lets = [stmt for stmt in statements(nest.body) if isinstance(stmt, Let)]
    dots = [let for let in lets if is_matrix_dot(let, tiling)]
    behind = {dot.target for dot in dots}
    for stmt in statements(nest.body):
        made = defined(stmt)
        if made is not None and behind & set(operands(stmt)):
            behind.add(made)
        elif isinstance(stmt, Fold) and stmt.value in behind:
            behind.add(stmt.target)
    chained = [dot for dot in dots if behind & set(dot.args)]
    rows = min((tiling.block(tiling.lanes(dot.target)[0]) for dot in chained), default=0)
    return max(1, STEP * nest.warps // rows) if rows else 1


def from_registers(tile: Tile, nest: Nest) -> bool:
    """True if a tile is computed, not loaded: a first operand need not lie in shared memory."""
    return all(tile != arrived for arrived, _ in arrivals(nest.body))


def _bytes(tile: Tile, tiling: Tiling) -> int:
    return MEMORY[tile.dtype].bytes * prod(tiling.block(dim) for dim in tiling.lanes(tile))
