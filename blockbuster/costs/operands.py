"""How matrix units read the operands of a dot: bytes of shared memory, and instructions.

From sm_90 on, four warps together multiply 64 rows with operands in shared memory. Before, and for
fewer rows, a warp multiplies 16 rows by 8 columns by 16, from what it has loaded from shared
memory. Dots of float32 are products and sums of the vector units. ``emit/tile/layouts.py`` decides
between these.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

from blockbuster.emit.tile.float8_dots import LEAST_DEPTH, PARTIAL
from blockbuster.emit.tile.layouts import COLUMNS, GROUP, GROUP_ROWS, HOPPER, ROWS, Layouts
from blockbuster.emit.tile.program import Let
from blockbuster.emit.tile.result_dtypes import FLOAT
from blockbuster.emit.tile.rings import arrivals
from blockbuster.emit.tile.shared_memory import tile_bytes
from blockbuster.emit.tile.uneven_rows import rows_along
from blockbuster.emit.tile.uses import matrix_dots
from blockbuster.ir.dtypes import FLOAT8

DEPTH = 16
"""Elements of the sum that one instruction of matrix units takes, of two bytes each."""

RATES = {FLOAT8: "float8"}
"""The names of dtypes in the data of machines, where they have others."""

LANES = 32
"""Lanes of a warp."""

READ = 16
"""Bytes of a lane that one instruction reads from shared memory."""

READS = 5.6
"""Instructions beside a product of float32, times the root of the results that a lane has."""


TF32 = "tf32"
PRODUCTS = 3
"""Products of parts of its operands that a split dot is made of."""

PARTS, ROWS_OF_BANKS = 2, 8
"""Parts of an element, and rows of 128 bytes in shared memory after which banks repeat."""

TAKEN_APART, ADDED_UP = 5, 4
"""Instructions to take an element apart, which is rounded by four of them and subtracted, and those
for an element of the result: products of small parts that are no numbers are set to 0, and the sum
is added. In machine code for a product of 128 x 32 x 32 in four warps, 328 of 448 (Triton 3.6).
"""


@dataclass(frozen=True)
class Dot:
    """One dot: its unit, bytes that are read from shared memory, instructions of lanes.

    ``dtype``: what the unit multiplies, ``products``: how many times it makes the whole dot.
    ``apart``: each warp multiplies by itself, on units that four of them could use together.
    ``passed``: bytes of a computed left side that pass through shared memory, because warps lie
    along the columns and each needs all of its rows. ``turns``: instructions that add to the same
    part of the result, each after the one before, if each warp multiplies by itself. ``partial``:
    additions of partial sums on vector units, which wait for the matrix units.
    """

    unit: str
    dtype: str
    fetched: int
    instructions: int
    apart: bool = False
    products: int = 1
    passed: int = 0
    turns: int = 0
    partial: int = 0


def dot_of(stmt: Let, layouts: Layouts) -> Dot:
    """The resources that one run of a dot of two blocks takes."""
    left, right = stmt.args
    rows, columns = (layouts.lanes(dim) for dim in layouts.tiling.lanes(stmt.target))
    depth = prod(map(layouts.lanes, layouts.tiling.lanes(left))) // rows
    dtype, step = RATES.get(left.dtype, left.dtype), DEPTH
    sums = 0  # additions of partial sums of float8 in float32
    if left.dtype == FLOAT8:
        step, sums = LEAST_DEPTH, rows * columns * -(-depth // PARTIAL)
    down, across = layouts.warps(stmt)
    loaded = any(tile == left for tile, _ in arrivals(layouts.nest.body))
    passed = 0 if loaded or across == 1 else tile_bytes(left, layouts.tiling)
    first = tile_bytes(left, layouts.tiling) * across if loaded or passed else 0
    second = tile_bytes(right, layouts.tiling)
    if stmt.split:
        split = _split(stmt, layouts, (rows, columns, depth), first)
        return replace(split, passed=passed)
    if layouts.grouped(stmt):
        slices = -(-rows // GROUP_ROWS)
        steps = slices * across * -(-depth // step)
        instructions = steps * GROUP * LANES + sums
        return Dot(
            "matrix", dtype, first + second * slices, instructions, passed=passed, partial=sums
        )
    fetched = first + second * down
    if left.dtype == FLOAT:
        each = rows * columns / (layouts.number * LANES)
        products = rows * columns * depth
        instructions = int(products * (1 + READS / each**0.5))
        return Dot("vector", FLOAT, fetched, instructions, passed=passed)
    steps = -(-rows // ROWS) * -(-columns // COLUMNS) * -(-depth // step)
    apart = layouts.target == HOPPER
    instructions = steps * LANES + fetched // READ + sums
    turns = -(-depth // step)
    return Dot(
        "matrix", dtype, fetched, instructions, apart, passed=passed, turns=turns, partial=sums
    )


def _split(stmt: Let, layouts: Layouts, shape: tuple[int, int, int], first: int) -> Dot:
    """A dot of float32 as products of tf32, of which an instruction takes half as many.

    Where four warps multiply together, they have the first operand in registers; the second is
    read, written in two parts, of which one is read by two products and the other by one.
    """
    (rows, columns, depth), (down, across) = shape, layouts.warps(stmt)
    second = tile_bytes(stmt.args[1], layouts.tiling)
    apart = TAKEN_APART * depth * (rows * across + columns) + ADDED_UP * rows * columns
    depths = PRODUCTS * -(-depth // (DEPTH // 2))
    if layouts.grouped(stmt):
        slices = -(-rows // GROUP_ROWS)
        steps = slices * across * depths
        written = PARTS * _waits_of_banks(stmt, layouts, columns)
        fetched = first + second * (1 + written + PRODUCTS * slices)
        return Dot("matrix", TF32, fetched, steps * GROUP * LANES + apart, products=PRODUCTS)
    apart += TAKEN_APART * depth * columns * (down - 1)
    fetched = first + second * down
    steps = -(-rows // ROWS) * -(-columns // COLUMNS) * depths
    instructions = steps * LANES + fetched // READ + apart
    alone = layouts.target == HOPPER
    return Dot("matrix", TF32, fetched, instructions, alone, PRODUCTS)


def _waits_of_banks(stmt: Let, layouts: Layouts, columns: int) -> int:
    """How many lanes wait in turn for a bank of shared memory where parts of the right operand are
    written.

    The units want it with neighbours along the sum. A lane has four neighbours as they lie in the
    array: if these are columns, it writes them into four rows of 128 bytes, of which every eighth
    begins in the same bank.
    """
    right, sums = stmt.args[1], layouts.tiling.lanes(stmt.target)
    views = (view for tile, view in arrivals(layouts.nest.body) if tile == right and view.dims)
    along = [dim for view in views for dim in rows_along(view.dims[-1])[:1]]
    if not along or along[0] not in sums:
        return 1
    return max(min(columns // ROWS_OF_BANKS, LANES // 2), 1)


def crowding(layouts: Layouts) -> int:
    """How many warps compute the same rows of dots, because all warps lie along few rows."""
    found = 1
    for dot in matrix_dots(layouts.nest.body, layouts.tiling):
        rows = layouts.lanes(layouts.tiling.lanes(dot.target)[0])
        found = max(found, ROWS * layouts.warps(dot)[0] // rows)
    return found
