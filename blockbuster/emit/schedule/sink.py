"""sink: what a nest makes before a parallel loop is made inside it, so that the grid runs the loop.

before   forall m in range(M):            after   forall m in range(M):
          t1 = load(I1[m])                         forall n in range(N):
          t2 = rsqrt(t1)                            t1 = load(I1[m])
          forall n in range(N):                     t2 = rsqrt(t1)
           ...                                      ...

Each block of the loop becomes a program, which can wait for ``t1`` until it needs it, and the grid
can be walked in groups. Costs what stood before the loop once per block of it: loads and operators,
no loop. In chunks (``chunk``) it is done once per chunk.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

from blockbuster.emit.closing.hoist import MOVING
from blockbuster.emit.schedule.base import LoopMove
from blockbuster.emit.schedule.on_grid import body_inside_grid
from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.emit.schedule.site import Site, with_body
from blockbuster.emit.tile.dataflow import stored
from blockbuster.emit.tile.program import For, Load, Stmt, TileProgram

Body = tuple[Stmt, ...]


class Sink(LoopMove):
    """Make what stands before a parallel loop in each of its iterations."""

    name: ClassVar[str] = "sink"

    def not_here(self, scheduled: Scheduled, site: Site, loop: For, /, **args: Any) -> str:
        """The loop is the last of what the grid runs, and what stands before it can be repeated."""
        _, body = body_inside_grid(scheduled.draft.nests[site.nest - 1])
        if body[-1] is not loop:
            return f"the loop over {loop.dim} is on the grid, or not the last of what it runs"
        return not_the_grids(loop) or not_repeatable(body[:-1], loop)

    def rewritten(self, scheduled: Scheduled, site: Site, **args: Any) -> TileProgram:
        """The draft with the loop around all that stood before it."""
        nest = scheduled.draft.nests[site.nest - 1]
        around, body = body_inside_grid(nest)
        loop = body[-1]
        assert isinstance(loop, For)
        made: Body = (replace(loop, body=(*body[:-1], *loop.body)),)
        for outer in reversed(around):
            made = (replace(outer, body=made),)
        return with_body(scheduled.draft, site, made)


def not_the_grids(loop: For) -> str:
    """Why a grid cannot run ``loop``, or ""."""
    if not loop.parallel:
        return f"the iterations of the loop over {loop.dim} depend on each other"
    if loop.chunk is not None or loop.span is not None or loop.within:
        return f"the loop over {loop.dim} runs over a part of it"
    return ""


def not_repeatable(before: Body, loop: For) -> str:
    """Why the statements before ``loop`` cannot be done in each of its iterations, or ""."""
    written = stored(loop.body)
    for stmt in before:
        if not isinstance(stmt, MOVING):
            return f"before the loop over {loop.dim} stands more than loads and operators"
        if isinstance(stmt, Load) and stmt.view.buffer in written:
            return f"the loop stores {stmt.view.buffer.name}, which is loaded before it"
    return ""
