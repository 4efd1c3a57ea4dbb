"""How the tiles of a kernel are used: by matrix units, by arithmetic, or by both."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeGuard

from blockbuster.emit.tile.dataflow import operands
from blockbuster.emit.tile.program import (
    Buffer,
    Fold,
    For,
    Guard,
    Let,
    Nest,
    Stmt,
    Store,
    Tile,
    statements,
)
from blockbuster.emit.tile.rings import arrivals
from blockbuster.emit.tile.tiling import Tiling
from blockbuster.emit.tile.typed import takes_matrix_units
from blockbuster.ir.ops import Cast, Functional, Relabel, Transpose
from blockbuster.ir.types import Dim, size_class

SWIZZLED = 64  # lanes of two bytes that the widest swizzle takes
THREADS = 128  # of the fewest warps that a kernel runs with


def is_matrix_dot(stmt: Stmt, tiling: Tiling) -> bool:
    """True if ``stmt`` is a dot of two blocks, which the matrix units take."""
    return takes_matrix_units(stmt, tiling.units)


@dataclass(frozen=True)
class Uses:
    """Per tile of one nest: each statement that reads it, once per operand position."""

    nest: Nest
    tiling: Tiling

    def of(self, tile: Tile) -> list[tuple[Stmt, int]]:
        """The statements that read ``tile``, with the operand position."""
        return [
            (stmt, index)
            for stmt in statements(self.nest.body)
            for index, operand in enumerate(operands(stmt))
            if operand == tile
        ]

    def behind_casts(self, tile: Tile) -> list[tuple[Stmt, int]]:
        """The same, but the readers of what it is cast to instead of a cast."""
        found = list[tuple[Stmt, int]]()
        for stmt, index in self.of(tile):
            if isinstance(stmt, Let) and isinstance(stmt.op, Cast):
                found += self.behind_casts(stmt.target)
            else:
                found.append((stmt, index))
        return found

    def only_in_dots(self, tile: Tile) -> bool:
        """True if every use is as an operand of a matrix dot, as it is or cast."""
        uses = self.behind_casts(tile)
        return bool(uses) and all(is_matrix_dot(stmt, self.tiling) for stmt, _ in uses)

    def read_transposed(self, tile: Tile) -> bool:
        """True if every use is as the second operand of a matrix dot, which wants columns."""
        return self.only_in_dots(tile) and all(index == 1 for _, index in self.behind_casts(tile))

    def summed(self, tile: Tile) -> bool:
        """True if lanes of ``tile`` are added up, as it is or after moves, casts and masks."""
        return any(map(self._sums, (stmt for stmt, _ in self.of(tile))))

    def _sums(self, stmt: Stmt) -> bool:
        match stmt:
            case Let(op=Functional("row_sum")):
                return True
            case Fold(target, "+") if target.per_lane:
                return True  # a loop of one iteration leaves the product itself
            case Guard() | Let(op=Relabel() | Transpose() | Cast()):
                return self.summed(stmt.target)
        return False

    def dots_of_several_widths(self) -> bool:
        """True if matrix dots of narrow dtypes may swizzle their operands in several ways.

        A tile's rows are swizzled by as many bytes as they have, up to those of ``SWIZZLED``
        lanes. Which axis is a row is known at launch only, so both are looked at.
        """
        dots = [s for s in statements(self.nest.body) if is_matrix_dot(s, self.tiling)]
        operands_ = [arg for s in dots if isinstance(s, Let) for arg in s.args]
        blocks = [self.tiling.blocks[d] for arg in operands_ for d in self.tiling.lanes(arg)]
        return len(dots) > 1 and len({min(block, SWIZZLED) for block in blocks}) > 1

    def fewest_rows(self) -> int:
        """The fewest lanes down the result of a matrix dot; 0 where there is none."""
        lets = (stmt for stmt in statements(self.nest.body) if isinstance(stmt, Let))
        dots = (stmt for stmt in lets if is_matrix_dot(stmt, self.tiling))
        rows = (self.tiling.blocks[self.tiling.lanes(stmt.target)[0]] for stmt in dots)
        return min(rows, default=0)

    def mixed(self) -> bool:
        """True if a loop reads an array both for a matrix dot and for arithmetic.

        Triton's software pipeliner then overwrites the tile while the matrix units still read it
        (a silent race, whichever of its two reads came first): such a kernel must not be pipelined.
        """
        loops = (stmt for stmt in statements(self.nest.body) if isinstance(stmt, For))
        return any(self.read_in_two_ways(loop) for loop in loops)

    def read_in_two_ways(self, loop: For) -> str:
        """The name of an array that ``loop`` reads both for matrix dots and otherwise, or ""."""
        found: dict[str, str] = {}
        for tile, view in arrivals(loop.body):
            for use, _ in self.of(tile):
                way = self._way(use)
                if found.setdefault(view.buffer.name, way) != way:
                    return view.buffer.name
        return ""

    def _way(self, use: Stmt) -> str:
        if is_matrix_dot(use, self.tiling):
            return "dot"
        if isinstance(use, Let) and isinstance(use.op, Cast) and self.only_in_dots(use.target):
            return "a cast for dots"
        return "arithmetic"

    def waits(self, sizes: Mapping[Dim, int]) -> int:
        """The most iterations of a loop of dots whose loads wait, the kernel being ``mixed``.

        ``sizes`` are by size class.
        """
        if not self.mixed():
            return 0
        blocks = self.tiling.blocks
        loops = (stmt for stmt in statements(self.nest.body) if isinstance(stmt, For))
        dims = [
            loop.dim
            for loop in loops
            if any(is_matrix_dot(stmt, self.tiling) for stmt in loop.body)
        ]
        return max((-(-sizes[size_class(d)] // blocks[d]) for d in dims), default=0)

    def accumulated(self, body: tuple[Stmt, ...]) -> dict[Tile, Let]:
        """Matrix dots of ``body`` whose result is only added, as it is, to a sum of ``body``.

        Keyed by the dot's result: the accumulator is the dot's third operand.
        """
        found = {}
        for stmt in body:
            if isinstance(stmt, Let) and is_matrix_dot(stmt, self.tiling):
                uses = self.of(stmt.target)
                if len(uses) == 1 and _adds(*uses[0]) and uses[0][0] in body:
                    found[stmt.target] = stmt
        return found

    def shared_sums(self, loop: For) -> list[Tile]:
        """Sums over rows that a serial loop adds up, unless all that reads them is one store.

        Triton 3.6 fails to compile such a loop if its sum is not read exactly once behind it (an
        assertion in its pass OptimizeThreadLocality), as x * x does, and many a scalar function.
        """
        if loop.parallel:
            return []
        rows = {s.target for s in loop.body if isinstance(s, Let) and self._reduces(s)}
        found = [s.target for s in loop.body if _is_plain_sum(s) and s.value in rows]
        return [tile for tile in found if [type(s) for s, _ in self.of(tile)] != [Store]]

    def loaded_over_blocks(self, fold: Fold) -> Buffer | None:
        """The array that ``fold`` reduces, if threads hold several blocks along the kept lanes.

        "reduction in a loop over several blocks a thread": for loaded float32 values Triton's pass
        OptimizeThreadLocality, up to Triton 3.6 at least, then exchanges rows (exchanged_rows.py).
        It looks for a reduction of what a load gives, which one operation folds into what the
        loop hands on. How many elements in a row a thread loads is known at launch only: one is
        assumed.
        """
        made = {s.target: s for s in statements(self.nest.body) if isinstance(s, Let | Guard)}
        reduction = made.get(fold.value)
        if fold.members or not isinstance(reduction, Let) or not self._reduces(reduction):
            return None
        if math.prod(self.tiling.blocks[d] for d in self.tiling.lanes(fold.value)) <= THREADS:
            return None
        loaded_from = {tile: view.buffer for tile, view in arrivals(self.nest.body)}
        source = reduction.args[0]
        while source not in loaded_from:
            match made.get(source):
                case Guard(value=value) | Let(op=Relabel() | Cast(), args=(value,)):
                    source = value
                case _:
                    return None
        return loaded_from[source]

    def _reduces(self, stmt: Let) -> bool:
        lanes = len(self.tiling.lanes(stmt.target))
        fewer = any(len(self.tiling.lanes(arg)) > lanes for arg in stmt.args)
        return fewer and not is_matrix_dot(stmt, self.tiling)


def _is_plain_sum(stmt: Stmt) -> TypeGuard[Fold]:
    return isinstance(stmt, Fold) and stmt.monoid == "+" and not stmt.members


def _adds(stmt: Stmt, position: int) -> bool:
    """True if ``stmt`` adds its operand to a sum, without a factor."""
    if isinstance(stmt, Fold) and stmt.ahead and position > 0:
        return stmt.members[position - 1].monoid == "+"
    return _is_plain_sum(stmt)
