"""wide-tiles: NumPy text for small arrays computes in float64 throughout, and rounds its results.

before   t1 = load(Q[m,d])   float32     after   t1 = load(Q[m,d])   float64
         t2 = dot(t1, K)     float32             t2 = dot(t1, K)     float64
         t3 = exp(t2)        float32             t3 = exp(t2)        float64

In float32 a product, a sum and exp are computed in float64 and rounded once each
(own_functions.py). For a small array, every conversion costs as much as the computation. So only
loaded and stored tiles are converted, if that takes fewer conversions. No result is worse, because
intermediate values are not rounded.

A program that compares or rounds a computed value stays as it is: 0.7 * 10 is 7 in float32 and less
than 7 in float64, so its floor would differ.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

import numpy as np

from blockbuster.emit.tile.dataflow import defined, mapped, retargeted
from blockbuster.emit.tile.other_arrays import with_dtypes
from blockbuster.emit.tile.program import (
    INPUT,
    WORKSPACE,
    BlockOf,
    Fold,
    Let,
    Load,
    Stmt,
    Store,
    Tile,
    TileProgram,
    statements,
)
from blockbuster.emit.tile.result_dtypes import FLOAT, WIDTHS
from blockbuster.ir.expr import Arg, Call, Const, Expr, is_predicate, without_zeros
from blockbuster.ir.ops import Cast, Functional, Pointwise

WIDE = "float64"
ROUNDED = ("exp", "log", "tanh", "sigmoid", "silu", "gelu", "pow")
"""Scalar functions that are computed in float64 for float32."""
STEPS = ("floor", "round", "whole", "floordiv", "mod")
"""Scalar functions that jump, beside comparisons."""


def wide_tiles(program: TileProgram) -> TileProgram:
    """``program`` with its float32 tiles and workspaces in float64, if that costs less."""
    body = tuple(s for nest in program.nests for s in statements(nest.body))
    loaded = {s.target for s in body if isinstance(s, Load) and s.view.buffer.space == INPUT}
    if program.dtype != FLOAT or any(_jumps(stmt, loaded) for stmt in body):
        return program
    if sum(map(_conversions, body)) <= sum(map(_at_the_ends, body)):
        return program
    tiles = dict.fromkeys(tile for s in body if (tile := defined(s)) and tile.dtype == FLOAT)
    wide = {tile: replace(tile, dtype=WIDE) for tile in tiles}
    kept = {b.name: WIDE for b in program.workspaces if b.dtype == FLOAT}
    nests = (
        replace(nest, body=mapped(nest.body, lambda stmt: retargeted(stmt, wide)))
        for nest in program.nests
    )
    return with_dtypes(replace(program, nests=tuple(nests)), kept)


def _conversions(stmt: Stmt) -> int:
    """How often a statement converts tiles between float32 and float64, as it is."""
    if not isinstance(stmt, Let):
        return 0
    narrow = [tile.dtype for tile in (*stmt.args, stmt.target)].count(FLOAT)
    match stmt.op:
        case Functional("dot" | "row_sum"):
            return narrow
        case Pointwise(expr):
            return 2 * sum(call.fn in ROUNDED for call in _calls(expr)) if narrow else 0
    return 0


def _at_the_ends(stmt: Stmt) -> int:
    """How often it does where all tiles are float64."""
    if isinstance(stmt, Load | Store):
        return stmt.view.buffer.dtype == FLOAT and stmt.view.buffer.space != WORKSPACE
    return 0


def _calls(expr: Expr) -> Iterator[Call]:
    if isinstance(expr, Call):
        yield expr
        for arg in expr.args:
            yield from _calls(arg)


def _jumps(stmt: Stmt, loaded: Collection[Tile]) -> bool:
    """True if a rounded value may give a result far from that of the value itself."""
    match stmt:
        case Let(_, Cast()):
            return True
        case Let(_, Pointwise(expr), args):
            same = [tile in loaded or not WIDTHS[tile.dtype] for tile in args]
            mended = without_zeros(expr) or expr  # a sum of 0 becomes infinite: absent rows alone
            return any(_is_step(call, same) for call in _calls(mended))
        case Fold(members=members):
            return any(_is_step(call, ()) for one in members for call in _calls(one.factor))
        case BlockOf(value=value) | Store(value=value) if WIDTHS[value.dtype]:
            return isinstance(stmt, BlockOf) or not WIDTHS[stmt.view.buffer.dtype]
    return False


def _is_step(call: Call, same: Sequence[bool]) -> bool:
    """True for a jump of what is computed; ``same``: the operands that are so in both dtypes."""
    jumps = call.fn in STEPS or is_predicate(call)
    asked = call.args if jumps else call.args[:1] if call.fn == "where" else ()
    return not all(_is_same(arg, same) for arg in asked)


def _is_same(arg: Expr, same: Sequence[bool]) -> bool:
    """True for a number that is so in both dtypes, and for a truth value, which is asked itself."""
    match arg:
        case Arg(index):
            return index < len(same) and same[index]
        case Const(value):
            return float(np.float32(value)) == value
    return is_predicate(arg)
