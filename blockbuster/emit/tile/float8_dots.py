"""Dots of float8: which of them the matrix units take as they are loaded.

A dot multiplies rows by rows: the last axis of both operands is summed. The matrix units of sm_90
read operands of 8 bits only along the sum (of 16 bits they also read columns), so each array must
have the summed axis last. Other dots of float8 are made in float16, which holds every number of
float8: their products and sums are the same.

Sums in float8 are less precise: within ``PARTIAL`` products, an H200 keeps 14 bits of them. So such
partial sums are added in float32, which is enough for results of 16 bits. Results in float32 would
show the error, and where a program casts float8 to a wider float before a dot, it asks for more
precise sums: the dot is then made in float16, or in the dtype of the program.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from blockbuster.emit.tile.dataflow import defined, expanded, operands
from blockbuster.emit.tile.dtypes import DTYPES
from blockbuster.emit.tile.program import Buffer, Let, Stmt, Tile, View, statements
from blockbuster.ir.dtypes import FLOAT8
from blockbuster.ir.ops import Cast

PARTIAL = 128
"""Products that are added by the matrix units alone, at most: as in ``torch._scaled_mm``.

For products of 4096 positive numbers, the error is 6e-4 with 128, 2e-4 with 64, and 7e-2 if all are
added so; 64 take an H200 1.16 times as long.
"""

LEAST_DEPTH = 32
"""Elements of the sum that one instruction of matrix units takes in float8, at least."""


def is_widening(stmt: Stmt) -> bool:
    """True for a cast of float8 to a wider float, which changes no number."""
    if not (isinstance(stmt, Let) and isinstance(stmt.op, Cast)):
        return False
    return stmt.args[0].dtype == FLOAT8 and stmt.op.dtype in (*DTYPES, "float64")


def in_float8(dot: Let) -> bool:
    """True for a dot of blocks that the matrix units take in float8."""
    return all(arg.dtype == FLOAT8 for arg in dot.args)


def not_precise(outputs: Sequence[Buffer]) -> str:
    """Why sums of float8 would not be precise enough for these results of a kernel, or ""."""
    wide = [buffer for buffer in outputs if buffer.dtype in ("float32", "float64")]
    return f"{wide[0].name} is {wide[0].dtype}: it shows how sums were rounded" if wide else ""


def not_in_float8(operands: Sequence[Tile], views: Mapping[Tile, View]) -> str:
    """Why the matrix units do not take these operands of a dot in float8, or "".

    ``views`` are those of loaded tiles.
    """
    for tile in operands:
        if tile.dtype != FLOAT8:
            return f"{tile.name} is {tile.dtype}"
        if tile not in views:
            return f"{tile.name} is computed"
        if views[tile].dims[-1] != tile.axes[-1]:
            name = views[tile].buffer.name
            return f"{name} does not lie along the sum: its last axis is not {tile.axes[-1]}"
    return ""


def without_unread_casts(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """``body`` without the casts of float8 that no dot reads any more."""
    if not any(map(is_widening, statements(body))):
        return body
    read = {tile for stmt in statements(body) for tile in operands(stmt)}
    return expanded(body, lambda s: () if is_widening(s) and defined(s) not in read else (s,))
