"""How matrix units take the operands of a dot: bytes of shared memory, and instructions.

From sm_90 on, four warps together multiply 64 rows with operands in shared memory; before, and for
fewer rows, a warp multiplies 16 rows by 8 columns by 16 of what it has loaded from shared memory.
Dots of float32 are products and sums of the vector units. ``emit/tile/layouts.py`` says which.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from blockbuster.emit.tile.layouts import COLUMNS, GROUP, GROUP_ROWS, HOPPER, ROWS, Layouts
from blockbuster.emit.tile.program import Let, statements
from blockbuster.emit.tile.result_dtypes import FLOAT
from blockbuster.emit.tile.rings import arrivals
from blockbuster.emit.tile.shared_memory import tile_bytes
from blockbuster.emit.tile.uses import is_matrix_dot

DEPTH = 16
"""Elements of the sum that one instruction of matrix units takes."""

LANES = 32
"""Lanes of a warp."""

READ = 16
"""Bytes of a lane that one instruction reads from shared memory."""

READS = 5.6
"""Instructions beside a product of float32, times the root of the results that a lane has."""


@dataclass(frozen=True)
class Dot:
    """One dot: its unit, bytes that are read from shared memory, instructions of lanes.

    ``apart``: each warp multiplies by itself, on units that four of them could use together.
    ``passed``: bytes of a computed left side that pass through shared memory, because warps lie
    along the columns and each needs all of its rows.
    """

    unit: str
    fetched: int
    instructions: int
    apart: bool = False
    passed: int = 0


def dot_of(stmt: Let, layouts: Layouts) -> Dot:
    """What one run of a dot of two blocks takes."""
    left, right = stmt.args
    rows, columns = (layouts.lanes(dim) for dim in layouts.tiling.lanes(stmt.target))
    depth = prod(map(layouts.lanes, layouts.tiling.lanes(left))) // rows
    down, across = layouts.warps(stmt)
    loaded = any(tile == left for tile, _ in arrivals(layouts.nest.body))
    passed = 0 if loaded or across == 1 else tile_bytes(left, layouts.tiling)
    first = tile_bytes(left, layouts.tiling) * across if loaded or passed else 0
    second = tile_bytes(right, layouts.tiling)
    if layouts.grouped(stmt):
        slices = -(-rows // GROUP_ROWS)
        steps = slices * across * -(-depth // DEPTH)
        return Dot("matrix", first + second * slices, steps * GROUP * LANES, passed=passed)
    fetched = first + second * down
    if left.dtype == FLOAT:
        each = rows * columns / (layouts.number * LANES)
        products = rows * columns * depth
        return Dot("vector", fetched, int(products * (1 + READS / each**0.5)), passed=passed)
    steps = -(-rows // ROWS) * -(-columns // COLUMNS) * -(-depth // DEPTH)
    apart = layouts.target == HOPPER
    return Dot("matrix", fetched, steps * LANES + fetched // READ, apart, passed)


def crowding(layouts: Layouts) -> int:
    """How many warps compute the same rows of dots, because all warps lie along few rows."""
    found = 1
    for stmt in statements(layouts.nest.body):
        if isinstance(stmt, Let) and is_matrix_dot(stmt, layouts.tiling):
            rows = layouts.lanes(layouts.tiling.lanes(stmt.target)[0])
            found = max(found, ROWS * layouts.warps(stmt)[0] // rows)
    return found
