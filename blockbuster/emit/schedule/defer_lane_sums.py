"""defer-lane-sums: a loop folds tiles lane by lane; lanes are reduced once, behind it.

before   for n in range(N):               after   for n in range(N):
          t3 = load(X[m,n])                        t3 = load(X[m,n])
          t1 += row_sum(t3)                        t1 += t3          (an entry per lane of a block)
                                                  t2 = row_sum(t1)

Saves the reduction across lanes in every iteration. Sums are rounded less, too: many short chains
instead of a long one. The same for maxima and minima, and for several reductions on end. Costs an
accumulator with the tile's lanes, in registers: see ``does_not_pay``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from blockbuster.emit.tile.dataflow import folded, fresh_names, reads
from blockbuster.emit.tile.program import (
    Fold,
    For,
    Init,
    Let,
    Nest,
    Stmt,
    Tile,
    TileProgram,
    statements,
)
from blockbuster.emit.tile.tiling import Tiling
from blockbuster.emit.tile.uses import is_matrix_dot
from blockbuster.ir.ops import Functional
from blockbuster.ir.types import size_class

MOST = 4096  # lanes that a loop folds into: 32 registers of each thread of four warps
REDUCTION = {"+": "row_sum", "max": "row_max", "min": "row_min"}


def defer_lane_sums(program: TileProgram, tiling: Tiling) -> TileProgram:
    """``program`` with reductions across lanes moved behind the loops that fold them."""
    names = fresh_names(program)
    nests = tuple(
        replace(nest, body=_Writer(nest, tiling, names).body(nest.body)) for nest in program.nests
    )
    return replace(program, nests=nests)


def not_deferrable(fold: Fold, loop: For, before: list[Stmt], nest: Nest) -> str:
    """Why ``fold`` needs its value reduced in ``loop``, which stands behind ``before``, or ""."""
    target, value = fold.target, fold.value
    if fold.members:
        return f"{target.name} is a running exponent, which others are rescaled by"
    if _reduction(fold, loop) is None:
        return f"{value.name} is no {REDUCTION[fold.monoid]} made in the loop"
    if list(reads(nest.body)).count(value) > 1:
        return f"{value.name} is read elsewhere, too"
    if target in reads(loop.body):
        return f"{target.name} is read in the loop"
    if sum(folded(stmt).count(target) for stmt in statements(nest.body)) > 1:
        return f"{target.name} is folded at two places"
    if Init(target, fold.monoid) not in before:
        return f"{target.name} does not start beside the loop"
    return ""


def does_not_pay(fold: Fold, loop: For, tiling: Tiling) -> str:
    """Why an accumulator of all lanes costs more than it saves, or ""."""
    size, block = tiling.sizes[size_class(loop.dim)], tiling.blocks[loop.dim]
    if size <= block:
        return f"the loop over {loop.dim} has one iteration"
    if any(is_matrix_dot(stmt, tiling) for stmt in statements(loop.body)):
        return "the loop holds a dot, whose operands and sum need the registers"
    let = _reduction(fold, loop)
    assert let is not None
    wide, narrow = _lanes(let.args[0], tiling), _lanes(fold.target, tiling)
    if wide == narrow:
        return f"{let.args[0].name} has one lane along its last axis"
    others = (
        t for s in statements(loop.body) for t in folded(s) if t.per_lane and t != fold.target
    )
    held = wide + sum(_lanes(tile, tiling) for tile in others)
    if held > MOST:
        return f"the loop would fold into {held} lanes, more than {MOST}"
    return ""


def _reduction(fold: Fold, loop: For) -> Let | None:
    """What makes the value of ``fold`` in ``loop``, if it is the reduction of its monoid."""
    op = Functional(REDUCTION[fold.monoid])
    lets = (s for s in loop.body if isinstance(s, Let) and s.target == fold.value and s.op == op)
    return next(lets, None)


def _lanes(tile: Tile, tiling: Tiling) -> int:
    return math.prod(tiling.blocks[dim] for dim in tiling.lanes(tile))


@dataclass(frozen=True)
class _Writer:
    nest: Nest
    tiling: Tiling
    names: Iterator[str]

    def body(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """``body`` with the reductions of its loops behind them, inner loops first."""
        out: list[Stmt] = []
        for stmt in body:
            if not isinstance(stmt, For):
                out.append(stmt)
                continue
            loop, behind = replace(stmt, body=self.body(stmt.body)), list[Let]()
            while (fold := self._deferrable(loop, out)) is not None:
                loop, reduced = self._deferred(fold, loop, out)
                readers = (i for i, let in enumerate(behind) if reduced.target in let.args)
                behind.insert(next(readers, len(behind)), reduced)
            out += [loop, *behind]
        return tuple(out)

    def _deferrable(self, loop: For, before: list[Stmt]) -> Fold | None:
        for stmt in loop.body:
            if isinstance(stmt, Fold) and not (
                not_deferrable(stmt, loop, before, self.nest)
                or does_not_pay(stmt, loop, self.tiling)
            ):
                return stmt
        return None

    def _deferred(self, fold: Fold, loop: For, before: list[Stmt]) -> tuple[For, Let]:
        """The loop that folds lane by lane, and the reduction behind it; ``before`` changes."""
        let = _reduction(fold, loop)
        assert let is not None
        (value,) = let.args
        own = tuple(dim for dim in value.axes if dim in (*value.per_lane, loop.dim))
        hint = fold.target.hint
        if hint and not fold.target.per_lane:
            hint += "_lanes"
        total = Tile(next(self.names), value.axes, hint, own, fold.target.dtype)
        before[before.index(Init(fold.target, fold.monoid))] = Init(total, fold.monoid)
        by_lane = replace(fold, target=total, value=value)
        body = tuple(by_lane if s == fold else s for s in loop.body if s != let)
        return replace(loop, body=body), replace(let, target=fold.target, args=(total,))
