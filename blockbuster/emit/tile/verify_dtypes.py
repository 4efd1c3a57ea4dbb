"""Invariants of verify.py for programs with dtypes."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from blockbuster.emit.tile.chains import next_of
from blockbuster.emit.tile.dataflow import defined, folded
from blockbuster.emit.tile.dtypes import MEMORY
from blockbuster.emit.tile.float8_dots import is_widening
from blockbuster.emit.tile.program import (
    BlockOf,
    For,
    Guard,
    Init,
    Iota,
    Issue,
    Let,
    Stmt,
    Tile,
    TileProgram,
    statements,
)
from blockbuster.emit.tile.result_dtypes import FLOAT, INDEX, WIDTHS, value_dtype
from blockbuster.emit.tile.rings import arrivals, issues
from blockbuster.emit.tile.typed import arithmetic_of, filled_dtype, takes_matrix_units
from blockbuster.ir.dtypes import FLOAT8, INTEGERS

Reasons = Iterator[str]


def dtypes_are_known(program: TileProgram) -> Reasons:
    """All arrays and tiles have a dtype, or none has; no array holds indices."""
    for buffer in (*program.inputs, *program.outputs, *program.workspaces):
        if buffer.dtype not in (*MEMORY, "float64") if program.dtype else buffer.dtype:
            yield f"{buffer.name} has dtype {buffer.dtype!r}{_beside(program)}"
    for stmt in _all(program):
        for tile in (*_made(stmt), *folded(stmt)):
            if tile.dtype not in WIDTHS if program.dtype else tile.dtype:
                yield f"{tile.name} has dtype {tile.dtype!r}{_beside(program)}"


def loads_keep_the_dtype(program: TileProgram) -> Reasons:
    """A loaded tile has the dtype of its array, also where the load ran ahead."""
    for nest in program.nests:
        issued = ((stmt.tile, stmt.view) for stmt in issues(nest.body).values())
        for tile, view in (*issued, *arrivals(nest.body)):
            yield from _differs(tile, view.buffer.dtype, f"{view.buffer.name} is loaded as")


def dots_take_one_dtype(program: TileProgram) -> Reasons:
    """Both operands of a dot on the matrix units are in the program's dtype, or stay wider sums.

    Operands of float8 may be in it, or in the dtype that they are cast to.
    """
    widened = {stmt.target for stmt in _all(program) if isinstance(stmt, Let) and is_widening(stmt)}
    for stmt in _all(program):
        if isinstance(stmt, Let) and takes_matrix_units(stmt, program.units):
            narrow = all(arg.dtype == FLOAT8 or arg in widened for arg in stmt.args)
            if narrow and len({arg.dtype for arg in stmt.args}) == 1:
                continue
            for arg in stmt.args:
                if arg.dtype not in (program.dtype, "float64"):
                    yield f"{arg.name}, of {arg.dtype}, is read by a dot of {program.dtype}"


def split_dots_take_float32(program: TileProgram) -> Reasons:
    """A split statement is a dot of two blocks of float32."""
    for stmt in _all(program):
        if isinstance(stmt, Let) and stmt.split:
            name = stmt.target.name
            if not takes_matrix_units(stmt, program.units):
                yield f"{name} is split, but no dot of two blocks"
            elif any(arg.dtype != FLOAT for arg in stmt.args):
                yield f"{name} is split, but its operands are no float32"


def sums_are_wide(program: TileProgram) -> Reasons:
    """Accumulators are in float32 or float64; those of integers alone are integers."""
    for stmt in _all(program):
        for tile in (stmt.target,) if isinstance(stmt, Init) else folded(stmt):
            if tile.dtype in INTEGERS:
                continue
            if WIDTHS[tile.dtype] < WIDTHS[arithmetic_of(program)]:
                yield f"the accumulator {tile.name} is {tile.dtype}"


def operators_give_their_dtype(program: TileProgram) -> Reasons:
    """The result of an operator has the operator's result dtype, or is a sum kept in float64."""
    for stmt in _all(program):
        if isinstance(stmt, Let):
            given = [arg.dtype for arg in stmt.args]
            made, dtype = value_dtype(stmt.op, given, arithmetic_of(program)), stmt.target.dtype
            if dtype not in (made, "float64" if made == FLOAT else made):
                yield f"{stmt.target.name} is {dtype}, but its operator gives {made}"


def indices_are_whole(program: TileProgram) -> Reasons:
    """Indices and numbers of blocks are "int", and so are the bounds of loops.

    The length of a chain is a sum, and may be a float.
    """
    for stmt in _all(program):
        if isinstance(stmt, Iota):
            yield from _differs(stmt.target, INDEX, f"the indices of {stmt.dim} are")
        elif isinstance(stmt, BlockOf):
            yield from _differs(stmt.target, INDEX, f"numbers of blocks of {stmt.dim} are")
        elif isinstance(stmt, For):
            for tile in stmt.bounds[: 1 if next_of(stmt) else None]:
                yield from _differs(tile, INDEX, f"the bounds of the loop over {stmt.dim} are")


def guards_keep_the_dtype(program: TileProgram) -> Reasons:
    """A guarded tile has the dtype of its value, where that holds numbers."""
    for stmt in _all(program):
        if isinstance(stmt, Guard):
            dtype = filled_dtype(stmt.value.dtype, arithmetic_of(program))
            yield from _differs(stmt.target, dtype, f"{stmt.value.name} is guarded as")


def _differs(tile: Tile, dtype: str, what: str) -> Reasons:
    if tile.dtype != dtype:
        yield f"{what} {tile.dtype}, not {dtype}"


def _beside(program: TileProgram) -> str:
    return f", where dots take {program.dtype}" if program.dtype else " in a program without dtypes"


def _all(program: TileProgram) -> Iterator[Stmt]:
    return (stmt for nest in program.nests for stmt in statements(nest.body))


def _made(stmt: Stmt) -> tuple[Tile, ...]:
    tile = stmt.tile if isinstance(stmt, Issue) else defined(stmt)
    return () if tile is None else (tile,)


DTYPE_CHECKS: tuple[Callable[[TileProgram], Reasons], ...] = (
    dtypes_are_known,
    loads_keep_the_dtype,
    indices_are_whole,
    operators_give_their_dtype,
    guards_keep_the_dtype,
    dots_take_one_dtype,
    split_dots_take_float32,
    sums_are_wide,
)
"""In this order: the later ones look dtypes up that the first has found known."""
