"""spread: a nest that works element by element along a dim runs its blocks side by side.

before   for m in range(M):               after   forall d in range(D):
          t2 = load(X[m,:])                        for m in range(M):
          t1 += col_sum(t2)                         t2 = load(X[m,d])
         store(t1,Y[:])                             t1 += col_sum(t2)
                                                  store(t1,Y[d])

A dim that is whole in a block program is one block in each of its nests, though only nests that sum
along it need this. The other nests get a loop over the dim, which the grid runs. Work that does not
depend on the dim is repeated for each of its blocks.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from blockbuster.emit.schedule.base import Args, NestMove
from blockbuster.emit.schedule.block import unlooped
from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.emit.schedule.site import Site, nest_at, with_body
from blockbuster.emit.schedule.words import Form
from blockbuster.emit.tile.dataflow import operands
from blockbuster.emit.tile.program import (
    For,
    Issue,
    Let,
    Load,
    Nest,
    Stmt,
    Store,
    TileProgram,
    statements,
)
from blockbuster.ir.ops import Relabel
from blockbuster.ir.types import Dim


class Spread(NestMove):
    """Run a nest over a dim that its tiles hold whole, block by block."""

    name: ClassVar[str] = "spread"
    form: ClassVar[Form] = Form("DIM")

    def arguments(self, scheduled: Scheduled, site: Site) -> Iterator[Args]:
        """Its dims that no loop runs over, as far as they can be cut."""
        nest = nest_at(scheduled.draft, site)
        for dim in unlooped(nest, scheduled.draft.units) if nest else ():
            if not self.why_not(scheduled, site, dim=dim):
                yield {"dim": dim}

    def not_here(self, scheduled: Scheduled, site: Site, nest: Nest, /, **args: Any) -> str:
        """The nest holds the dim whole, and no statement of it needs all of the dim."""
        dim = args["dim"]
        if dim not in unlooped(nest, scheduled.draft.units):
            return f"no tile of nest {site.nest} holds all of {dim}"
        if any(block.dim == dim for block in nest.blocks):
            return f"{dim} is cut already"
        return needs_all(nest, dim) or not_plain(nest)

    def rewritten(self, scheduled: Scheduled, site: Site, **args: Any) -> TileProgram:
        """The nest in a parallel loop over the dim."""
        nest = nest_at(scheduled.draft, site)
        assert nest is not None
        return with_body(scheduled.draft, site, (For(args["dim"], True, nest.body),))


def needs_all(nest: Nest, dim: Dim) -> str:
    """Why the tiles of ``nest`` cannot hold ``dim`` block by block, or ""."""
    found = (takes_all(stmt, dim) for stmt in statements(nest.body))
    return next(filter(None, found), "")


def takes_all(stmt: Stmt, dim: Dim) -> str:
    """Why ``stmt`` needs all elements of ``dim`` at once, or runs once for all of them, or ""."""
    match stmt:
        case Let(target, op, args):
            if dim not in target.axes and any(dim in arg.axes for arg in args):
                return f"{target.name} is made of all of {dim}"
            if isinstance(op, Relabel) and dim == op.new:
                return f"{target.name} has the elements of {op.old} under the name {dim}"
        case Store(view, value) if dim not in value.axes:
            return f"{view.buffer.name} would be stored by every block of {dim}"
        case For(dim=walked) if walked == dim:
            return f"a loop runs over {dim}"
    if isinstance(stmt, Load | Store):
        for used, axis in zip(stmt.view.dims, stmt.view.buffer.axes, strict=True):
            if axis.per_block and dim in (used, axis.dim):
                return f"{stmt.view.buffer.name} has an entry per block of {dim}"
    return ""


def not_plain(nest: Nest) -> str:
    """Why its loops and tiles depend on how it is cut, or ""."""
    for stmt in statements(nest.body):
        if isinstance(stmt, Issue) or any(tile.per_lane for tile in operands(stmt)):
            return "it is scheduled already: spread its dims first"
        if isinstance(stmt, For) and (stmt.chunk is not None or stmt.span is not None):
            return f"its loop over {stmt.dim} runs over a part of it"
    return ""
