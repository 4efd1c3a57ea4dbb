"""A small nest that finds, per block of rows, the blocks of columns that a mask of data lets by.

before   for n in range(N):                     after   forall m in range(M):
          t1 = where(q == k, s, -inf)                     for n in range(N):
                                                           t2 = where(k meets q, first(n), inf)
                                                           t3 min= t2
                                                          store(t3,I1[m])   (and the last)

A block of columns is reached if the interval of its numbers meets the interval of the rows'
numbers. If numbers are in order, as those of documents are, few blocks are reached without need.
The nest takes the time to read its data, once for all heads that share them. NaN is in no interval.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from blockbuster.emit.schedule.bounds import Scan
from blockbuster.emit.schedule.conditions import Formulas
from blockbuster.emit.schedule.whole_numbers import extreme_in_block
from blockbuster.emit.tile.dataflow import stored
from blockbuster.emit.tile.program import (
    FIRST,
    WORKSPACE,
    Buffer,
    BufferAxis,
    Fold,
    For,
    Init,
    Iota,
    Let,
    Load,
    Nest,
    Stmt,
    Store,
    Tile,
    View,
)
from blockbuster.emit.tile.trips import dims_in
from blockbuster.ir.expr import Arg, Expr, call
from blockbuster.ir.ops import Pointwise
from blockbuster.ir.origin import Origin
from blockbuster.ir.types import Dim, size_class

MEETS = {
    "lt": call("lt", Arg(0), Arg(3)), "le": call("le", Arg(0), Arg(3)),
    "gt": call("gt", Arg(1), Arg(2)), "ge": call("ge", Arg(1), Arg(2)),
    "eq": call("and", call("le", Arg(0), Arg(3)), call("ge", Arg(1), Arg(2))),
}  # fmt: skip
"""Whether a column can compare with a row: the least and most of columns, then those of rows."""


@dataclass
class ScanWriter:
    """Writes the nests that are scanned before ``formulas.nest``, whose loop is over ``dim``.

    ``loops``: the dims that loops around that one walk, outermost first. ``units``: dims whose
    blocks are one element. ``made``: the nests, and what they store, by comparison.
    """

    formulas: Formulas
    dim: Dim
    loops: tuple[Dim, ...]
    units: tuple[Dim, ...]
    names: Iterator[str]
    origin: Origin
    made: dict[tuple[Expr, str, Expr], tuple[Nest, tuple[View, View]]] = field(default_factory=dict)

    def view(self, scan: Scan) -> View:
        """The place where the first (or the last) position that ``scan`` finds is stored."""
        key = (scan.columns, scan.fn, scan.rows)
        if key not in self.made:
            self.made[key] = self._nest(scan)
        return self.made[key][1][0 if scan.least else 1]

    def can(self, scan: Scan) -> bool:
        """True if both sides can be computed in a nest of their own."""
        leaves = (*self._leaves(scan.columns), *self._leaves(scan.rows))
        return all(leaf.dtype != "bool" for leaf in leaves) and self._slice(leaves) is not None

    def _leaves(self, expr: Expr) -> tuple[Tile, ...]:
        return self.formulas.leaves_of(expr)

    def _slice(self, tiles: Sequence[Tile]) -> list[Stmt] | None:
        """The statements that make ``tiles``, in order; None if one cannot be made again."""
        needed, found = set(tiles), list[Stmt]()
        written = stored(self.formulas.nest.body)
        for tile, stmt in reversed(self.formulas.made.items()):
            if tile not in needed:
                continue
            if not isinstance(stmt, Load | Iota | Let):
                return None
            if isinstance(stmt, Load) and stmt.view.buffer in written:
                return None
            needed.update(stmt.args if isinstance(stmt, Let) else ())
            found.insert(0, stmt)
        return found

    def _nest(self, scan: Scan) -> tuple[Nest, tuple[View, View]]:
        rows, columns = (self._slice(self._leaves(side)) for side in (scan.rows, scan.columns))
        assert rows is not None
        assert columns is not None
        before, ends = self._ends(scan.rows)
        loads = (s.view.runs for s in (*rows, *columns) if isinstance(s, Load))
        used = {dim for runs in loads for dim in runs}
        dims = tuple(dim for dim in self.loops if dim in used)
        totals = [Tile(next(self.names), ()) for _ in range(2)]
        body: list[Stmt] = [*rows, *before]
        body += [Init(tile, monoid) for tile, monoid in zip(totals, ("min", "max"), strict=True)]
        body.append(For(self.dim, False, self._iteration(scan, columns, ends, totals), self.origin))
        first, last = (View(self._buffer(dims), dims or (None,)) for _ in totals)
        body += [Store(first, totals[0], self.origin), Store(last, totals[1], self.origin)]
        return self.nest_over(dims, tuple(body)), (first, last)

    def nest_over(self, dims: tuple[Dim, ...], body: tuple[Stmt, ...]) -> Nest:
        """``body`` inside parallel loops, with the blocks of the nest that is scanned for."""
        for dim in reversed(dims):
            body = (For(dim, True, body, self.origin),)
        here = dims_in(Nest(body))
        blocks = tuple(block for block in self.formulas.nest.blocks if block.dim in here)
        return Nest(body, blocks=blocks)

    def _iteration(
        self, scan: Scan, columns: list[Stmt], ends: tuple[Tile, Tile], totals: Sequence[Tile]
    ) -> tuple[Stmt, ...]:
        """Of a block of columns: its first position, if it is met."""
        made, mine = self._ends(scan.columns)
        position = Tile(next(self.names), ())
        body = [*columns, *made, Iota(position, self.dim, self.origin, FIRST)]
        args = (*mine, *ends, position)
        for total, monoid, none in zip(totals, ("min", "max"), (math.inf, -math.inf), strict=True):
            found = Tile(next(self.names), ())
            chosen = call("where", MEETS[scan.fn], Arg(4), none)
            body.append(Let(found, Pointwise(chosen, ()), args, self.origin))
            body.append(Fold(total, monoid, found, origin=self.origin))
        return tuple(body)

    def _ends(self, expr: Expr) -> tuple[list[Let], tuple[Tile, Tile]]:
        """The least and the most of a formula in a block."""
        made, found = list[Let](), list[Tile]()
        for name, none in (("row_min", math.inf), ("row_max", -math.inf)):
            made += extreme_in_block(self.formulas, expr, name, none, self.names, self.origin)
            found.append(made[-1].target)
        return made, (found[0], found[1])

    def _buffer(self, dims: tuple[Dim, ...]) -> Buffer:
        axes = tuple(BufferAxis(dim, size_class(dim) not in self.units) for dim in dims)
        return Buffer(next(self.names), axes or (BufferAxis(None),), WORKSPACE)
