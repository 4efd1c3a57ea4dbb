"""guard: padded lanes that would spoil a reduction are set to its identity first.

before   t3 = exp(t2)            after   t3 = exp(t2)
         t4 = row_sum(t3)                t5 = guard(t3,N,0)     (padded columns hold exp(0) = 1)
                                         t4 = row_sum(t5)

So is what an accumulator adds up lane by lane, along the loop's own dim.
Nothing is inserted where the lanes are known to be right: a dot of two loaded tiles needs no guard.
A target with fixed tile sizes needs this pass; where tiles are slices it changes nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from blockbuster.emit.tile.dataflow import fresh_names, operands
from blockbuster.emit.tile.padding import IDENTITY, Lane, LaneState
from blockbuster.emit.tile.program import Fold, For, Guard, Let, Stmt, Tile, TileProgram
from blockbuster.ir.ops import Functional
from blockbuster.ir.types import Dim

Made: TypeAlias = dict[tuple[Tile, Dim, float], Tile]

# a reduction along the last axis and the value that it ignores
IGNORED = {"row_sum": 0.0, "row_max": -math.inf, "row_min": math.inf}


def guard(program: TileProgram, ragged: Sequence[Dim]) -> TileProgram:
    """``program`` with guards, where the dims ``ragged`` do not fill their last block."""
    writer = _Writer(LaneState(ragged), fresh_names(program))
    nests = tuple(replace(nest, body=writer.body(nest.body, {})) for nest in program.nests)
    return replace(program, nests=nests)


def guard_nests(program: TileProgram) -> TileProgram:
    """``program`` with guards, where the blocks of its nests say that dims are ragged."""
    names = fresh_names(program)
    nests = []
    for nest in program.nests:
        ragged = [block.dim for block in nest.blocks if block.ragged]
        nests.append(replace(nest, body=_Writer(LaneState(ragged), names).body(nest.body, {})))
    return replace(program, nests=tuple(nests))


def unguarded(stmt: Let | Fold, lanes: LaneState) -> Iterator[tuple[int, Dim, float]]:
    """The operands of a reduction whose padded lanes would change it: position, dim and fill."""
    if isinstance(stmt, Fold):
        start = IDENTITY[stmt.monoid]
        added = (dim for dim in stmt.target.per_lane if dim in lanes.ragged)
        yield from ((0, dim, start) for dim in added if lanes.lane(stmt.value, dim) != start)
        return
    if not isinstance(stmt.op, Functional):
        return
    name = stmt.op.name
    last = stmt.args[0].axes[-1] if stmt.args[0].axes else ""
    if last not in lanes.ragged:
        return
    if name in IGNORED and lanes.lane(stmt.args[0], last) != IGNORED[name]:
        yield 0, last, IGNORED[name]
    elif name == "dot":
        held = [lanes.lane(arg, last) for arg in stmt.args]
        if 0.0 in held and all(map(_finite, held)):
            return
        for position, lane in enumerate(held):
            if lane != 0.0:
                yield position, last, 0.0


def _finite(lane: Lane) -> bool:
    return isinstance(lane, float) and math.isfinite(lane)


@dataclass
class _Writer:
    lanes: LaneState
    names: Iterator[str]

    def body(self, body: tuple[Stmt, ...], outer: Made) -> tuple[Stmt, ...]:
        """``body`` with guards; those made before it in the enclosing loops are used again."""
        made = dict(outer)
        out: list[Stmt] = []
        for stmt in body:
            if isinstance(stmt, For):
                out.append(replace(stmt, body=self.body(stmt.body, made)))
                continue
            if isinstance(stmt, Let | Fold):
                stmt = self._guarded(stmt, made, out)
            self.lanes.step(stmt)
            out.append(stmt)
        return tuple(out)

    def _guarded(self, stmt: Let | Fold, made: Made, out: list[Stmt]) -> Let | Fold:
        args = list(operands(stmt))
        for position, dim, fill in unguarded(stmt, self.lanes):
            value = args[position]
            key = (value, dim, fill)
            if key not in made:
                made[key] = replace(value, name=next(self.names))
                guarding = Guard(made[key], value, dim, fill, stmt.origin)
                self.lanes.step(guarding)
                out.append(guarding)
            args[position] = made[key]
        if isinstance(stmt, Fold):
            return replace(stmt, value=args[0])
        return replace(stmt, args=tuple(args))
