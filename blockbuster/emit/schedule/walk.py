"""walk: a program of the grid takes several blocks of a dim, one after the other.

before   forall m in range(M):            after   forall c in range(M_chunk):
          t1 = load(X[m])                          t2 = load(W[:])
          t2 = load(W[:])                          for m in chunk c of range(M):
          t3 = dot(t1,t2)                           t1 = load(X[m])
          store(t3,O[m])                            t3 = dot(t1,t2)
                                                    store(t3,O[m])

What all blocks share is loaded once per program, and ``stage`` lets the loads of the next block run
ahead of the arithmetic of this one. Costs programs: with too few of them processors idle, and the
last ones have longer to go. Parallel loops inside the walked one go around it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, ClassVar

from blockbuster.emit.schedule.base import Args, LoopMove, not_a_power_of_two
from blockbuster.emit.schedule.numbered_chunks import numbered, trips_at, with_chunks
from blockbuster.emit.schedule.on_grid import body_inside_grid, not_on_the_grid
from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.emit.schedule.site import Site, known_loop, with_body
from blockbuster.emit.schedule.words import Form
from blockbuster.emit.tile.program import For, Nest, Stmt, TileProgram


class Walk(LoopMove):
    """Run the blocks of a loop of the grid by ``count`` programs, each its chunk in turn."""

    name: ClassVar[str] = "walk"
    form: ClassVar[Form] = Form("COUNT")
    number: ClassVar[str] = "count"
    starts: ClassVar[tuple[int, ...]] = (8, 64)

    def arguments(self, scheduled: Scheduled, site: Site) -> Iterator[Args]:
        """Powers of two, up to a program for each block."""
        most = trips_at(scheduled, site)
        yield from ({"count": 1 << power} for power in range(1, 11) if 1 << power < most)

    def not_here(self, scheduled: Scheduled, site: Site, loop: For, /, **args: Any) -> str:
        """The loop is one of the grid's, whose order nothing else has decided."""
        if reason := not_a_power_of_two(args["count"], "the number of programs", 2):
            return reason
        nest = scheduled.draft.nests[site.nest - 1]
        return not_on_the_grid(loop, nest) or not_in_any_order(loop, nest)

    def rewritten(self, scheduled: Scheduled, site: Site, **args: Any) -> TileProgram:
        """The draft with the loop over its chunks around the loop, as the last of the grid."""
        draft, loop = scheduled.draft, known_loop(scheduled.draft, site)
        chunks = numbered(draft, loop.dim, args["count"])
        around, inside = body_inside_grid(draft.nests[site.nest - 1])
        walked = replace(loop, parallel=False, body=inside, chunk=chunks.number)
        body: tuple[Stmt, ...] = (For(chunks.number, True, (walked,), loop.origin),)
        for outer in reversed(around):
            if outer is not loop:
                body = (replace(outer, body=body),)
        return with_chunks(with_body(draft, site, body), (chunks,))


def not_in_any_order(loop: For, nest: Nest) -> str:
    """Why the blocks of ``loop`` cannot be taken in the order of its chunks, or ""."""
    if loop.span is not None:
        return f"the loop over {loop.dim} runs over a part of its blocks"
    if loop.dim in nest.last_first or nest.group is not None:
        return f"the order of the grid over {loop.dim} is decided already"
    return ""
