"""defer: a loop folds tiles lane by lane; the lanes are reduced once, after the loop.

before   for n in range(N):               after   for n in range(N):
          t3 = load(X[m,n])                        t3 = load(X[m,n])
          t1 += row_sum(t3)                        t1 += t3          (an entry per lane of a block)
                                                  t2 = row_sum(t1)

Saves the reduction across lanes in every iteration. Sums are rounded less, too: many short chains
instead of one long chain. Applies to maxima and minima as well, and to several consecutive
reductions. Costs an accumulator with all lanes of the tile, in registers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from itertools import takewhile
from typing import Any, ClassVar

from blockbuster.emit.schedule.base import BodyMove
from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.emit.schedule.site import Site, statement_at, with_body
from blockbuster.emit.tile.dataflow import expanded, folded, fresh_names, level_of, reads
from blockbuster.emit.tile.each_nest import KEPT, Body, Same
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
from blockbuster.ir.ops import ROW_FOLDS, Functional


class DeferLaneSums(BodyMove):
    """Fold what a loop reduces across lanes lane by lane, and reduce it behind the loop."""

    name: ClassVar[str] = "defer"

    def not_in(self, program: TileProgram, site: Site, fold: Stmt, /) -> str:
        """The statement is a fold whose value nothing else needs in its loop."""
        if not isinstance(fold, Fold):
            return "it is no fold"
        nest = program.nests[site.nest - 1]
        place = place_of(fold, nest.body)
        if place is None:
            return f"{fold.target.name} is folded outside a loop"
        loop, before = place
        return not_deferrable(fold, loop, before, nest)

    def rewritten(self, scheduled: Scheduled, site: Site, **args: Any) -> TileProgram:
        """The loop that folds lane by lane, and the reduction behind it."""
        draft = scheduled.draft
        fold, nest = statement_at(draft, site), draft.nests[site.nest - 1]
        assert isinstance(fold, Fold)
        place = place_of(fold, nest.body)
        assert place is not None
        loop, start = place[0], Init(fold.target, fold.monoid)
        total, by_lane, reduced = _deferred(fold, loop, fresh_names(draft))

        def change(stmt: Stmt) -> tuple[Stmt, ...]:
            if stmt is loop:
                return by_lane, reduced
            return (total,) if stmt == start else (stmt,)

        return with_body(draft, site, expanded(nest.body, change))


def place_of(fold: Fold, body: tuple[Stmt, ...]) -> tuple[For, tuple[Stmt, ...]] | None:
    """The loop that holds ``fold`` itself, and the statements of the same level before the loop."""
    loops = (stmt for stmt in statements(body) if isinstance(stmt, For))
    loop = next((one for one in loops if any(stmt is fold for stmt in one.body)), None)
    if loop is None:
        return None
    level = level_of(body, loop)
    return loop, tuple(takewhile(lambda stmt: stmt is not loop, level))


def not_deferrable(fold: Fold, loop: For, before: tuple[Stmt, ...], nest: Nest) -> str:
    """Why ``fold`` needs its value reduced in ``loop``, which stands behind ``before``, or ""."""
    target, value = fold.target, fold.value
    if fold.members:
        return f"{target.name} is a running exponent, which others are rescaled by"
    if reduction_of(fold, loop) is None:
        return f"{value.name} is no {ROW_FOLDS[fold.monoid]} made in the loop"
    read, folds = _counted(Same(nest.body))
    if read[value] > 1:
        return f"{value.name} is read elsewhere, too"
    if target in _counted(Same(loop.body))[0]:
        return f"{target.name} is read in the loop"
    if folds[target] > 1:
        return f"{target.name} is folded at two places"
    if Init(target, fold.monoid) not in before:
        return f"{target.name} does not start beside the loop"
    return ""


@lru_cache(maxsize=KEPT)  # moves ask it of each fold of a body
def _counted(body: Same[Body]) -> tuple[Counter[Tile], Counter[Tile]]:
    """How often each tile is read in ``body``, and how often it is folded into."""
    folds = (tile for stmt in statements(body.one) for tile in folded(stmt))
    return Counter(reads(body.one)), Counter(folds)


def reduction_of(fold: Fold, loop: For) -> Let | None:
    """The operator that makes the value of ``fold``, if it is its monoid's reduction."""
    op = Functional(ROW_FOLDS[fold.monoid])
    lets = (s for s in loop.body if isinstance(s, Let) and s.target == fold.value and s.op == op)
    return next(lets, None)


def _deferred(fold: Fold, loop: For, names: Iterator[str]) -> tuple[Init, For, Let]:
    """The start of the sums of lanes, the loop that folds them, and the reduction behind it."""
    let = reduction_of(fold, loop)
    assert let is not None
    (value,) = let.args
    own = tuple(dim for dim in value.axes if dim in (*value.per_lane, loop.dim))
    hint = fold.target.hint
    if hint and not fold.target.per_lane:
        hint += "_lanes"
    total = Tile(next(names), value.axes, hint, own, fold.target.dtype)
    by_lane = replace(fold, target=total, value=value)
    body = tuple(by_lane if s is fold else s for s in loop.body if s != let)
    behind = replace(let, target=fold.target, args=(total,))
    return Init(total, fold.monoid), replace(loop, body=body), behind
