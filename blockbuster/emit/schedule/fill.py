"""fill: where a mask decides the stored values, fully masked tiles are filled without computing.

before   forall n in range(N):                after   t8 = block(n,last(m)) + 1
          t2 = load(K[n,:])                           forall n in range(0, t8):
          t3 = dot(t1,t2)                              t2 = load(K[n,:])
          t4 = where(i >= j, t3, -inf)                 ...
          store(t4,S[m,n])                             store(t4,S[m,n])
                                                      forall n in range(t8, N):
                                                       store(-inf,S[m,n])

The range and its assumption that values are finite are those of ``narrow``. Legal if, in an
iteration where the mask is false everywhere, each stored tile is one known number and every fold
changes nothing. Saves the loads and the arithmetic of these tiles. Costs programs if the loop was
on the grid: it has to leave the grid, because its iterations differ.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from blockbuster.emit.schedule.base import LoopMove
from blockbuster.emit.schedule.conditions import Condition, conditions
from blockbuster.emit.schedule.dead_iterations import stored_when
from blockbuster.emit.schedule.narrow import is_masked, known_range, looked_into, no_mask, writer_of
from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.emit.schedule.site import Site, of_body, with_body
from blockbuster.emit.schedule.span_tiles import SpanWriter
from blockbuster.emit.tile.dataflow import replaced_by
from blockbuster.emit.tile.program import (
    For,
    Let,
    Nest,
    Span,
    Stmt,
    Store,
    Tile,
    TileProgram,
    statements,
)
from blockbuster.ir.expr import Const
from blockbuster.ir.ops import Pointwise


class Fill(LoopMove):
    """Let a loop that stores compute only the blocks in which its mask is true somewhere."""

    name: ClassVar[str] = "fill"

    def not_here(self, scheduled: Scheduled, site: Site, loop: For, /, **args: Any) -> str:
        """Under a dead mask all that is stored is known, and the mask bounds where that is."""
        if loop.span is not None or loop.chunk is not None:
            return f"the loop over {loop.dim} runs over a part of its blocks already"
        if reason := _without_mask(loop, scheduled.draft.nests[site.nest - 1]):
            return reason
        return _not_filled(scheduled.draft, site)

    def rewritten(self, scheduled: Scheduled, site: Site, **args: Any) -> TileProgram:
        """The loop over its span, and loops over the other blocks that store known numbers."""
        return _Filled(scheduled.draft, site).program()


@dataclass
class _Filled:
    """The loop at ``site`` and what it stores where its masks are dead; or the ``reason``."""

    draft: TileProgram
    site: Site
    reason: str = ""

    def __post_init__(self) -> None:
        self.draft, loop, self.formulas = looked_into(self.draft, self.site)
        self.loop = loop
        self.writer: SpanWriter = writer_of(loop, self.formulas, self.draft, alone=True)
        self.dead, self.stored = self._dead()
        if self.reason:
            return
        inner = (stmt for stmt in statements(loop.body) if isinstance(stmt, For))
        if any(stmt.span is not None for stmt in inner):
            self.reason = "a loop in it runs over a part of its blocks already"
            return
        self.range = known_range((self.dead,), self.writer)
        if not self.range.bounded:
            self.reason = f"the mask of the loop over {loop.dim} bounds no range of its blocks"

    def _dead(self) -> tuple[tuple[Condition, ...], Mapping[Store, float]]:
        """The first condition, or else all, under which an iteration only stores known numbers."""
        found = conditions(self.loop, self.formulas)
        if not found:
            self.reason = no_mask(self.loop)
            return (), {}
        for dead in (*((one,) for one in found), found):
            assumed = {one.formula: one.dead for one in reversed(dead)}
            known, self.reason = stored_when(self.loop, self.formulas, assumed)
            if not self.reason:
                return dead, known
        return (), {}

    def program(self) -> TileProgram:
        """The draft with the loop in parts."""
        begin, end = self.writer.span(self.range)
        parts = [replace(self.loop, span=(begin, end))]
        rest: list[Span] = [(None, begin)] if begin is not None else []
        rest += [(end, None)] if end is not None else []
        for span in rest:
            parts.append(replace(self.loop, span=span, body=self._filling(self.loop.body)))
        body = self.formulas.nest.body
        made = replaced_by(body, self.loop, (*self.writer.made, *parts))
        return with_body(self.draft, self.site, made)

    def _filling(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """The stores of ``body`` alone, of the numbers that are known."""
        out: list[Stmt] = []
        for stmt in body:
            if isinstance(stmt, For):
                if inner := self._filling(stmt.body):
                    out.append(replace(stmt, body=inner))
            elif isinstance(stmt, Store):
                axes = stmt.value.axes
                tile = Tile(next(self.writer.names), axes, stmt.value.hint)
                out.append(Let(tile, Pointwise(Const(self.stored[stmt]), axes), (), stmt.origin))
                out.append(replace(stmt, value=tile))
        return tuple(out)


def _without_mask(loop: For, nest: Nest) -> str:
    """Why no mask decides what ``loop`` stores, if that is seen at a glance, or ""."""
    if not any(isinstance(stmt, Store) for stmt in loop.statements):
        return f"the loop over {loop.dim} stores nothing: narrow leaves iterations out"
    return "" if is_masked(nest) else no_mask(loop)


@of_body
def _not_filled(program: TileProgram, site: Site) -> str:
    """Why the masks do not let the loop at ``site`` be filled, or ""."""
    return _Filled(program, site).reason
