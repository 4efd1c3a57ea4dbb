"""unroll: a serial loop of a few known iterations is written out.

before   for r in range(R):    (R = 3)         after   t2 = load(X[h])
          t2 = load(X[h+r])                            t3 = load(X[1+h])
          t1 += t2                                     t4 = t2 + t3
                                                       t5 = load(X[2+h])
                                                       t1 = t4 + t5

The taps of a window are such loops. Written out, their addresses and masks are constants apart, so
that they are computed once, and loads wait for no loop. Costs a copy of the body an iteration.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

from blockbuster.emit.schedule.base import LoopMove
from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.emit.schedule.site import Site, known_loop, with_body
from blockbuster.emit.schedule.two_parts import on_tiles
from blockbuster.emit.tile.dataflow import (
    defined,
    expanded,
    folded,
    folded_here,
    fresh_names,
    level_of,
    reads,
)
from blockbuster.emit.tile.monoids import COMBINED
from blockbuster.emit.tile.program import (
    Fold,
    For,
    Init,
    Iota,
    Let,
    Load,
    Nest,
    Stmt,
    Tile,
    TileProgram,
    View,
    statements,
)
from blockbuster.ir.expr import Const
from blockbuster.ir.lengths import whole
from blockbuster.ir.ops import Pointwise, Relabel
from blockbuster.ir.types import Dim, size_class
from blockbuster.ir.views import AxisView, Strided, dims_along, runs_along

MOST = 64
"""Iterations that are written out, at most: a text is read by people and compilers."""


class Unroll(LoopMove):
    """Write out the iterations of a serial loop."""

    name: ClassVar[str] = "unroll"

    def not_here(self, scheduled: Scheduled, site: Site, loop: For, /, **args: Any) -> str:
        """The number of iterations is a fact, and they only load, compute and fold."""
        found = (not_written_out(stmt, loop.dim) for stmt in loop.body)
        return (
            not_few(loop, scheduled.draft)
            or next(filter(None, found), "")
            or not_folded_here_alone(scheduled.draft.nests[site.nest - 1], loop)
        )

    def rewritten(self, scheduled: Scheduled, site: Site, **args: Any) -> TileProgram:
        """The draft with the iterations one after another."""
        draft, loop = scheduled.draft, known_loop(scheduled.draft, site)
        count = known_size(draft, loop.dim)
        written = tuple(_Writer(loop, count, fresh_names(draft)).written())
        sums = folded_here(loop.body)

        def change(stmt: Stmt) -> tuple[Stmt, ...]:
            if stmt is loop:
                return written
            return () if isinstance(stmt, Init) and stmt.target in sums else (stmt,)

        return with_body(draft, site, expanded(draft.nests[site.nest - 1].body, change))


def known_size(program: TileProgram, dim: Dim) -> int:
    """How many elements ``dim`` has for all sizes of the program; 0 if that is not known."""
    of = (rule.length for rule in program.rules if rule.dim == size_class(dim) and rule.exact)
    return next((int(n) for length in of if (n := length.constant) is not None), 0)


@dataclass(frozen=True)
class _Writer:
    """The ``count`` iterations of ``loop``; the last result of a fold has the fold's name."""

    loop: For
    count: int
    names: Iterator[str]

    def written(self) -> Iterator[Stmt]:
        """Each iteration under names of its own."""
        so_far: dict[Tile, Tile] = {}
        for at in range(self.count):
            new = {
                tile: replace(tile, name=next(self.names), axes=self._axes(tile))
                for stmt in self.loop.body
                if (tile := defined(stmt)) is not None
            }
            for stmt in self.loop.body:
                match on_tiles(stmt, new, partial(self._view, at=at)):
                    case Fold() as fold:
                        yield from self._folded(fold, so_far, at)
                    case Iota(target, dim, origin) if dim == self.loop.dim:
                        yield Let(target, Pointwise(Const(float(at)), ()), (), origin)
                    case made:
                        yield made

    def _axes(self, tile: Tile) -> tuple[Dim, ...]:
        return tuple(dim for dim in tile.axes if dim != self.loop.dim)

    def _folded(self, fold: Fold, so_far: dict[Tile, Tile], at: int) -> Iterator[Stmt]:
        before, target = so_far.get(fold.target), fold.target
        if before is None:
            so_far[target] = fold.value
            return
        last = at == self.count - 1
        so_far[target] = target if last else replace(target, name=next(self.names))
        op = Pointwise(COMBINED[fold.monoid], target.axes)
        yield Let(so_far[target], op, (before, fold.value), fold.origin)

    def _view(self, view: View, at: int) -> View:
        pairs = zip(view.dims, view.buffer.axes, strict=True)
        return replace(view, dims=tuple(self._axis(used, axis.dim, at) for used, axis in pairs))

    def _axis(self, used: AxisView, of: Dim | None, at: int) -> AxisView:
        if of is None or self.loop.dim not in dims_along(used):
            return used
        axis = used if isinstance(used, Strided) else Strided(of, runs_along(used))
        own = next(run for run in axis.runs if run.dim == self.loop.dim)
        left = tuple(run for run in axis.runs if run is not own)
        return replace(axis, runs=left, start=axis.start + own.step * whole(at))


# predicates ------------------------------------------------------------------------


def not_few(loop: For, program: TileProgram) -> str:
    """Why the iterations of ``loop`` are not a few single elements, one after another, or ""."""
    if loop.parallel:
        return f"the loop over {loop.dim} is no serial one"
    if loop.span is not None or loop.chunk is not None or loop.flat:
        return f"the loop over {loop.dim} runs over a part of it, or with another one"
    if size_class(loop.dim) not in program.units:
        return f"the blocks of {loop.dim} have several elements"
    if not (count := known_size(program, loop.dim)):
        return f"the size of {loop.dim} is not known for all calls"
    return "" if 1 < count <= MOST else f"{loop.dim} has {count} elements, not 2 to {MOST}"


def not_written_out(stmt: Stmt, dim: Dim) -> str:
    """Why ``stmt``, of a loop over ``dim``, cannot be repeated with other names, or ""."""
    match stmt:
        case Load(view=view):
            pairs = zip(view.dims, view.buffer.axes, strict=True)
            if any(axis.per_block and dim in dims_along(used) for used, axis in pairs):
                return f"{view.buffer.name} has an entry per block of {dim}"
        case Let(target, op, args) if any(dim in tile.axes for tile in (target, *args)):
            if not isinstance(op, Pointwise):
                return f"{target.name} is made of all of {dim}"
        case Let(target, Relabel()):
            return f"{target.name} has a dim under another name"
        case Iota() | Let():
            return ""
        case Fold(target):
            if stmt.members or stmt.ahead or stmt.onto or target.per_lane:
                return f"{target.name} is folded with others"
        case _:
            return f"the loop over {dim} holds more than loads, operators and folds"
    return ""


def not_folded_here_alone(nest: Nest, loop: For) -> str:
    """Why ``loop`` does not make all of its sums by itself, each for use behind it, or ""."""
    targets = [tile for stmt in statements(nest.body) for tile in folded(stmt)]
    begun = {stmt.target for stmt in level_of(nest.body, loop) if isinstance(stmt, Init)}
    for tile in folded_here(loop.body):
        if targets.count(tile) > 1 or tile not in begun:
            return f"{tile.name} is folded by other statements, too"
        if tile in reads(loop.body):
            return f"{tile.name} is read in the loop that folds it"
    return ""
