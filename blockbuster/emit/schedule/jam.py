"""jam: two blocks of rows in one program, which share what does not depend on rows.

before   forall m in range(M):           after   forall m in range(M_half):
          q = load(Q[m])                          q = load(Q[m]);  r = load(Q[M/2 + m])
          for n in range(N):                      for n in range(N):
           k = load(K[n])                          k = load(K[n])
           s = dot(q,k)                            s = dot(q,k)
           y += dot(exp(s),k)                      u = dot(r,k)
          store(y,O[m])                            y += dot(exp(s),k)
                                                   z += dot(exp(u),k)
                                                  store(y,O[m]);  store(z,O[M/2 + m])

The second block lies half of the dim behind the first. What loops load and both read is loaded
once, and while the arithmetic of one block runs, the matrix units have dots of the other: the
statements of a body alternate from dot to dot. Costs registers for a second block, and leaves half
as many programs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from blockbuster.emit.schedule.base import LoopMove
from blockbuster.emit.schedule.on_grid import not_on_the_grid
from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.emit.schedule.site import Site, known_loop, with_nest
from blockbuster.emit.schedule.two_parts import TwoParts, has_axis, name_taken, named_in, with_rules
from blockbuster.emit.schedule.walk import not_in_any_order
from blockbuster.emit.tile.dataflow import accessed, fresh_names, operands
from blockbuster.emit.tile.names import dim_word
from blockbuster.emit.tile.program import (
    Fold,
    For,
    Init,
    Issue,
    Let,
    Load,
    Nest,
    Stmt,
    Store,
    TileProgram,
    View,
)
from blockbuster.ir.lengths import ZERO, Rule, share_of, size
from blockbuster.ir.ops import Cast, Functional, Pointwise, Transpose
from blockbuster.ir.types import Dim, size_class
from blockbuster.ir.views import Run, Strided

DOT = Functional("dot")
PAIR = 2


class Jam(LoopMove):
    """Run two blocks of a loop of the grid together, statement by statement."""

    name: ClassVar[str] = "jam"

    def not_here(self, scheduled: Scheduled, site: Site, loop: For, /, **args: Any) -> str:
        """The grid runs the loop, its blocks come in pairs, and two of them can alternate."""
        draft = scheduled.draft
        nest = draft.nests[site.nest - 1]
        found = (not_in_pairs(stmt, loop.dim) for stmt in loop.statements)
        return (
            not_on_the_grid(loop, nest)
            or not_in_any_order(loop, nest)
            or not_even(nest, loop.dim, scheduled.sizes[size_class(loop.dim)])
            or name_taken(draft, Pairs(loop.dim).rule)
            or nothing_shared(loop)
            or next(filter(None, found), "")
        )

    def rewritten(self, scheduled: Scheduled, site: Site, **args: Any) -> TileProgram:
        """The draft with a loop over pairs of blocks."""
        draft, loop = scheduled.draft, known_loop(scheduled.draft, site)
        pairs = Pairs(loop.dim)
        writer = _Writer(pairs, fresh_names(draft))

        def body(stmts: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
            return tuple(
                replace(s, dim=pairs.half, body=writer.body(s.body)) if s is loop
                else replace(s, body=body(s.body)) if isinstance(s, For)
                else s
                for s in stmts
            )  # fmt: skip

        nest = draft.nests[site.nest - 1]
        blocks = (replace(b, dim=pairs.half) if b.dim == loop.dim else b for b in nest.blocks)
        made = replace(nest, body=body(nest.body), blocks=tuple(blocks))
        return with_rules(with_nest(draft, site, made), pairs.rule)


@dataclass(frozen=True)
class Pairs:
    """The blocks of ``dim`` in pairs: each of its first half with one of the second half."""

    dim: Dim

    @property
    def half(self) -> Dim:
        """The dim that counts the elements of a half."""
        return f"{dim_word(self.dim)}_half"

    @property
    def dims(self) -> tuple[Dim, Dim]:
        """The dims of both blocks: they count the same elements."""
        return self.half, self.half

    @property
    def rule(self) -> Rule:
        """The size of a half."""
        return Rule(self.half, size(size_class(self.dim)) * share_of(PAIR))

    def view(self, view: View, part: int) -> View:
        """An access to the block of a half."""
        behind = self.rule.length if part else ZERO
        axes = zip(view.dims, view.buffer.axes, strict=True)
        dims = tuple(
            Strided(axis.dim, (Run(self.half, self.rule.length),), behind)
            if dim == self.dim and axis.dim is not None
            else dim
            for dim, axis in axes
        )
        return replace(view, dims=dims)


class _Writer:
    """Statements for two blocks; the tiles of the first keep their names."""

    def __init__(self, pairs: Pairs, names: Iterator[str]) -> None:
        self._pairs, self._parts = pairs, TwoParts(pairs, names)

    def body(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """``body`` for both blocks, in turns: each ends with a dot, the last with the body."""
        out: list[Stmt] = []
        turn: list[Stmt] = []
        dots = _dots(body)
        for stmt in body:
            if isinstance(stmt, For):
                out += [*self._both(turn), replace(stmt, body=self.body(stmt.body))]
                turn = []
                continue
            turn.append(stmt)
            if stmt in dots[:-1]:
                out += self._both(turn)
                turn = []
        return (*out, *self._both(turn))

    def _both(self, turn: list[Stmt]) -> Iterator[Stmt]:
        for stmt in turn:
            yield self._parts.stmt(stmt, 0) if has_axis(stmt, self._pairs.dim) else stmt
        for stmt in turn:
            if has_axis(stmt, self._pairs.dim):
                yield self._parts.stmt(stmt, 1)


def _dots(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """The statements of ``body`` that begin dots: a fold begins the dot whose result it takes."""
    made = {s.target for s in body if isinstance(s, Let) and s.op == DOT}
    taking = [s for s in body if isinstance(s, Fold) and not made.isdisjoint(operands(s))]
    taken = {tile for fold in taking for tile in operands(fold)}
    return tuple(
        s for s in body
        if s in taking or (isinstance(s, Let) and s.target in made and s.target not in taken)
    )  # fmt: skip


# predicates ------------------------------------------------------------------------


def not_even(nest: Nest, dim: Dim, count: int) -> str:
    """Why the blocks of ``dim`` in ``nest`` are not full ones in pairs, or ""."""
    block = next((block for block in nest.blocks if block.dim == dim), None)
    if block is None:
        return f"{dim} is not cut yet: block before"
    pair = PAIR * block.lanes
    return (
        f"{dim} is {count}: two blocks have {pair}, which do not divide it" if count % pair else ""
    )


def nothing_shared(loop: For) -> str:
    """Why two blocks of ``loop`` share no loads of a loop inside, or ""."""
    inner = (stmt for stmt in loop.body if isinstance(stmt, For))
    if any(not has_axis(s, loop.dim) and not isinstance(s, For) for one in inner for s in one.body):
        return ""
    return f"two blocks of {loop.dim} share nothing in a loop"


def not_in_pairs(stmt: Stmt, dim: Dim) -> str:
    """Why ``stmt`` cannot be done for two blocks of ``dim``, or ""."""
    match stmt:
        case Load() | Store():
            for used in stmt.view.dims:
                if isinstance(used, Strided) and dim in (run.dim for run in used.runs):
                    return f"{stmt.view.buffer.name} is sliced along {dim}"
            if _runs(stmt, dim) and dim not in accessed(stmt).axes:
                return f"{stmt.view.buffer.name} has one entry for a block of {dim}"
            if isinstance(stmt, Store) and not _runs(stmt, dim):
                return f"{stmt.view.buffer.name} is stored once for all blocks of {dim}"
        case Let(target, op, args):
            rows = any(dim in arg.axes for arg in args)
            if rows and dim not in target.axes:
                return f"{target.name} is made of all rows of a block"
            if dim in target.axes and not isinstance(op, Functional | Pointwise | Transpose | Cast):
                return f"{target.name} has {dim} under another name"
        case Fold(target, members=members) if has_axis(stmt, dim):
            if any(dim not in t.axes for t in (target, *(m.target for m in members))):
                return f"{target.name} is a running exponent for each of {dim}"
        case Init() | Fold():
            return ""
        case For(dim=walked) if walked == dim:
            return f"a loop runs over {dim}"
        case Issue() if _runs(stmt, dim):
            return f"loads of {stmt.view.buffer.name} run ahead already: jam before"
        case _ if has_axis(stmt, dim) or _runs(stmt, dim):
            return f"{named_in(stmt)[-1].name} holds positions along {dim}"
    return ""


def _runs(stmt: Stmt, dim: Dim) -> bool:
    """True if ``stmt`` accesses an array, or positions, of ``dim``."""
    if isinstance(stmt, For):
        return False
    view = getattr(stmt, "view", None)
    return dim in view.runs if view is not None else getattr(stmt, "dim", None) == dim
