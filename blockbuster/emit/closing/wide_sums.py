"""wide-sums: in NumPy text that computes in float32, sums and what is made of them stay float64.

before   t1 += row_sum(t2)   float32     after   t1 += row_sum(t2)   float64
         t3 = t1 / |N|       float32             t3 = t1 / |N|       float64
         t4 = t2 - t3        float32             t4 = t2 - t3        float32

A sum is rounded once: where it is stored as a result, or where a tile with more axes reads it. A
sum over several axes or over blocks is a sum of sums, and a mean multiplies each by 1/N. If every
step were rounded, each would err by a unit in the last place; eager NumPy rounds once. So the tiles
between stay wide: accumulators of sums, partial sums, and functions of them that have no more axes.
These are the small tiles of a program; full tiles stay in float32.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from blockbuster.emit.tile.dataflow import mapped, retargeted
from blockbuster.emit.tile.other_arrays import with_dtypes
from blockbuster.emit.tile.program import (
    Buffer,
    Fold,
    Guard,
    Init,
    Let,
    Nest,
    Stmt,
    Store,
    Tile,
    TileProgram,
    statements,
)
from blockbuster.emit.tile.result_dtypes import FLOAT
from blockbuster.emit.tile.rings import arrivals
from blockbuster.emit.tile.typed import retyped
from blockbuster.ir.dtypes import INTEGERS
from blockbuster.ir.expr import Call, Expr, arguments, is_predicate
from blockbuster.ir.ops import Functional, Pointwise, Relabel, Transpose
from blockbuster.ir.regroup import Regroup
from blockbuster.ir.types import Dim, size_class

STEPS = ("where", "sub0", "recip0")
"""Scalar functions that jump: of a number and of its rounded value they may be far apart."""


WIDE = "float64"


def wide_sums(program: TileProgram) -> TileProgram:
    """``program`` with sums in float64, if it computes in float32."""
    program = retyped(program)
    if program.dtype != FLOAT:
        return program
    buffers, wide = _wide_in(program)
    made = with_dtypes(program, {buffer.name: WIDE for buffer in buffers})
    nests = zip(made.nests, wide, strict=True)

    return replace(made, nests=tuple(_widened(nest, found.tiles) for nest, found in nests))


def _widened(nest: Nest, tiles: frozenset[Tile]) -> Nest:
    """``nest`` with float64 ``tiles``; a tile that it loads has the dtype of the array."""
    loaded = {tile: view.buffer.dtype for tile, view in arrivals(nest.body)}
    wide = {tile: replace(tile, dtype=loaded.get(tile, WIDE)) for tile in tiles}
    return replace(nest, body=mapped(nest.body, lambda stmt: retargeted(stmt, wide)))


@dataclass(frozen=True)
class _Wide:
    """Tiles of a nest in float64. ``carried``: tiles that their readers keep wide, too."""

    tiles: frozenset[Tile]
    carried: frozenset[Tile]


def _wide_in(program: TileProgram) -> tuple[frozenset[Buffer], tuple[_Wide, ...]]:
    """The workspaces in float64, and the tiles of each nest.

    A workspace of float32 becomes float64 if all that is stored in it is. Nests are looked at one
    by one: the tile that one loads may have the name of the tile that another computed.
    """
    buffers = frozenset(buffer for buffer in program.workspaces if buffer.dtype == FLOAT)
    while True:
        found = tuple(_found(nest, buffers, program.units) for nest in program.nests)
        rounded = {
            stmt.view.buffer
            for nest, wide in zip(program.nests, found, strict=True)
            for stmt in statements(nest.body)
            if isinstance(stmt, Store) and stmt.value not in wide.carried
        }
        if not rounded & buffers:
            return buffers, found
        buffers -= rounded


def _found(nest: Nest, buffers: frozenset[Buffer], units: tuple[Dim, ...]) -> _Wide:
    """The wide tiles of a nest, if these workspaces are wide."""
    body = tuple(statements(nest.body))
    added = {value for s in body if isinstance(s, Fold) for value in _added(s)}
    others = {tile for s in body for tile in _read_but_not_added(s)}
    tiles: set[Tile] = set()
    carried = {tile for tile, view in arrivals(nest.body) if view.buffer in buffers}
    for stmt in body:
        match stmt:
            case Guard(target, value) if value in carried:
                carried.add(target)
            case Init(target, "+") if target.dtype not in INTEGERS:
                carried.add(target)
                tiles.add(target)
            case Fold():
                carried -= {t for t, value in _folds(stmt) if value not in carried}
            case Let(target, Functional("dot")) if target in added - others:
                tiles.add(target)
            case Let() if stmt.target.dtype not in INTEGERS and _carries(stmt, carried, units):
                carried.add(stmt.target)
    return _Wide(frozenset(tiles | carried), frozenset(carried))


def _folds(fold: Fold) -> list[tuple[Tile, Tile]]:
    """Accumulators and what is folded into them."""
    return [(fold.target, fold.value), *((m.target, m.value) for m in fold.members)]


def _added(fold: Fold) -> list[Tile]:
    own = [fold.value] if fold.monoid == "+" else []
    return [*own, *(member.value for member in fold.members if member.monoid == "+")]


def _read_but_not_added(stmt: Stmt) -> tuple[Tile, ...]:
    match stmt:
        case Let():
            return stmt.args
        case Store() | Guard():
            return (stmt.value,)
        case Fold() if stmt.monoid != "+":
            return (stmt.value,)
    return ()


def _carries(stmt: Let, carried: set[Tile], units: tuple[Dim, ...]) -> bool:
    """True for a sum, and for what is computed of sums alone and has no more elements than they.

    What is computed of other values, too, is rounded as it is where it has more elements: x[0] - s
    is the first element of x - s.
    """
    match stmt.op:
        case Functional("row_sum"):
            return True
        case Pointwise(expr, _):
            axes = {dim for dim in stmt.target.axes if size_class(dim) not in units}
            read = [stmt.args[place] for place in arguments(expr)]
            small = any(axes <= set(arg.axes) for arg in read)
            return small and carried.issuperset(read) and not _jumps(expr)
        case Transpose() | Relabel() | Regroup():
            return stmt.args[0] in carried
    return False


def _jumps(expr: Expr) -> bool:
    """True if a truth value or a step is in ``expr``."""
    if is_predicate(expr):
        return True
    return isinstance(expr, Call) and (expr.fn in STEPS or any(map(_jumps, expr.args)))
