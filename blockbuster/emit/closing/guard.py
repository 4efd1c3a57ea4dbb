"""guard: padded lanes that would spoil a reduction are first set to the reduction's identity.

before   t3 = exp(t2)            after   t3 = exp(t2)
         t4 = row_sum(t3)                t5 = guard(t3,N,0)     (padded columns hold exp(0) = 1)
                                         t4 = row_sum(t5)

The same holds for an accumulator that is folded lane by lane along the loop's own dim. No guard is
inserted where the lanes are known to be right: a dot of two loaded tiles needs none. Targets with
fixed tile sizes need this pass; it changes nothing where tiles are slices.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from blockbuster.emit.tile.dataflow import (
    defined,
    expanded,
    folded,
    fresh_names,
    operands,
    reads,
    same_or,
    with_parts,
)
from blockbuster.emit.tile.each_nest import RAGGED, Around, naming_body
from blockbuster.emit.tile.padding import LaneState, is_finite
from blockbuster.emit.tile.program import (
    Fold,
    For,
    Guard,
    Let,
    Nest,
    Stmt,
    Store,
    Tile,
    TileProgram,
    statements,
)
from blockbuster.emit.tile.tiling import ragged_dims
from blockbuster.emit.tile.typed import filled_dtype
from blockbuster.ir.ops import IDENTITY, MONOID_OF, Cast, Functional, Scan
from blockbuster.ir.origin import Origin
from blockbuster.ir.types import Dim

Made: TypeAlias = dict[tuple[Tile, Dim, float], Tile]

IGNORED = {name: IDENTITY[monoid] for name, monoid in MONOID_OF.items()}
"""By reduction along the last axis, the value that it ignores."""


def guard(program: TileProgram, ragged: Sequence[Dim]) -> TileProgram:
    """``program`` with guards, where the dims ``ragged`` do not fill their last block."""
    writer = _Writer(LaneState(ragged), fresh_names(program))
    return replace(program, nests=tuple(map(writer.nest, program.nests)))


@naming_body(RAGGED)
def guard_nests(nest: Nest, _: Around, names: Iterator[str]) -> Nest:
    """A nest with guards, where its blocks say that dims are ragged."""
    return _Writer(LaneState(ragged_dims(nest)), names).nest(nest)


@naming_body(RAGGED)
def guarded_stores(nest: Nest, _: Around, names: Iterator[str]) -> Nest:
    """A nest with zeros past the end of the rows that it stores in arrays of padded rows."""
    made = _with_stores_guarded(nest.body, LaneState(ragged_dims(nest)), names)
    return with_parts(nest, body=made)


def _with_stores_guarded(
    body: tuple[Stmt, ...], lanes: LaneState, names: Iterator[str]
) -> tuple[Stmt, ...]:
    out: list[Stmt] = []
    for stmt in body:
        if isinstance(stmt, For):
            with lanes.inside(stmt):
                inner = _with_stores_guarded(stmt.body, lanes, names)
            out.append(with_parts(stmt, body=inner))
            continue
        if isinstance(stmt, Store) and stmt.view.buffer.pitch > 1:
            dim, value = stmt.view.dims[-1], stmt.value
            assert isinstance(dim, str), "rows of a part of an axis have no lanes past their end"
            if dim in lanes.ragged and lanes.lane(value, dim) != 0.0:
                target = replace(value, name=next(names), dtype=filled_dtype(value.dtype))
                out.append(Guard(target, value, dim, 0.0, stmt.origin))
                stmt = replace(stmt, value=target)
        lanes.step(stmt)
        out.append(stmt)
    return same_or(body, tuple(out))


def unguarded(stmt: Let | Fold, lanes: LaneState) -> Iterator[tuple[int, Dim, float]]:
    """The operands of a reduction whose padded lanes would change it: position, dim and fill."""
    if isinstance(stmt, Fold):
        start = IDENTITY[stmt.monoid]
        added = (dim for dim in stmt.target.per_lane if dim in lanes.ragged)
        yield from ((0, dim, start) for dim in added if lanes.lane(stmt.value, dim) != start)
        return
    last = stmt.args[0].axes[-1] if stmt.args and stmt.args[0].axes else ""
    if isinstance(stmt.op, Scan) and stmt.op.back and last in lanes.ragged:
        start = IDENTITY[stmt.op.monoid]
        if lanes.lane(stmt.args[0], last) != start:
            yield 0, last, start
    if not isinstance(stmt.op, Functional):
        return
    name = stmt.op.name
    if last not in lanes.ragged:
        return
    if name in IGNORED and lanes.lane(stmt.args[0], last) != IGNORED[name]:
        yield 0, last, IGNORED[name]
    elif name == "dot":
        held = [lanes.lane(arg, last) for arg in stmt.args]
        if 0.0 in held and all(map(is_finite, held)):
            return
        for position, lane in enumerate(held):
            if lane != 0.0:
                yield position, last, 0.0


@dataclass
class _Writer:
    lanes: LaneState
    names: Iterator[str]
    casts: dict[Tile, Let] = field(default_factory=dict)

    def nest(self, nest: Nest) -> Nest:
        """``nest`` with guards. Of a cast, the operand is guarded: others may read it so, too."""
        changing = {tile for stmt in statements(nest.body) for tile in folded(stmt)}
        self.casts = {
            stmt.target: stmt
            for stmt in statements(nest.body)
            if isinstance(stmt, Let) and isinstance(stmt.op, Cast) and stmt.args[0] not in changing
        }
        body = self.body(nest.body, {})
        unread = set(self.casts).difference(reads(body))
        return with_parts(nest, body=expanded(body, lambda s: () if defined(s) in unread else (s,)))

    def body(self, body: tuple[Stmt, ...], outer: Made) -> tuple[Stmt, ...]:
        """``body`` with guards; those made before it in the enclosing loops are used again."""
        made = dict(outer)
        out: list[Stmt] = []
        for stmt in body:
            if isinstance(stmt, For):
                with self.lanes.inside(stmt):
                    out.append(with_parts(stmt, body=self.body(stmt.body, made)))
                continue
            if isinstance(stmt, Let | Fold):
                stmt = self._guarded(stmt, made, out)
            self.lanes.step(stmt)
            out.append(stmt)
        return same_or(body, tuple(out))

    def _guarded(self, stmt: Let | Fold, made: Made, out: list[Stmt]) -> Let | Fold:
        args = list(operands(stmt))
        for position, dim, fill in unguarded(stmt, self.lanes):
            args[position] = self._filled((args[position], dim, fill), stmt.origin, made, out)
        if isinstance(stmt, Fold):
            return with_parts(stmt, value=args[0])
        return with_parts(stmt, args=tuple(args))

    def _filled(
        self, key: tuple[Tile, Dim, float], origin: Origin, made: Made, out: list[Stmt]
    ) -> Tile:
        value, dim, fill = key
        if key in made:
            return made[key]
        if cast := self.casts.get(value):
            inner = self._filled((cast.args[0], dim, fill), origin, made, out)
            target = replace(value, name=next(self.names))
            guarding: Let | Guard = replace(cast, target=target, args=(inner,))
        else:
            target = replace(value, name=next(self.names), dtype=filled_dtype(value.dtype))
            guarding = Guard(target, value, dim, fill, origin)
        self.lanes.step(guarding)
        out.append(guarding)
        made[key] = target
        return target
