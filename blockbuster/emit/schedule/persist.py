"""persist: a fixed number of programs take the places of a grid, one after the other.

before   forall m in range(M):          after   forall m in range(M):      # by 132 programs
          forall n in range(N):                  forall n in range(N):
           for k in range(K): ...                 for k in range(K): ...
           store(t1,Y[m,n])                       store(t1,Y[m,n])

As many programs as run at a time are started, and each takes the next place when it is done with
one. The loop over places and the loop inside it are one loop for the compiler: the loads of a place
run ahead while the results of the place before are stored. Otherwise a processor that has room for
one program waits for the first loads of each. Costs registers for what spans both.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from blockbuster.emit.schedule.base import NEST, Args, Move, no_such_place, read_number
from blockbuster.emit.schedule.on_grid import body_inside_grid
from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.emit.schedule.site import EVERYWHERE, Site, nests_at, with_nest
from blockbuster.emit.tile.program import TileProgram


class Persist(Move):
    """Let a fixed number of programs take the places of a nest's grid in turn."""

    name: ClassVar[str] = "persist"
    takes: ClassVar[str] = NEST
    form: ClassVar[str] = "PROGRAMS"

    def sites(self, scheduled: Scheduled) -> Iterator[Site]:
        """Each nest with a grid."""
        for at in range(1, len(scheduled.draft.nests) + 1):
            if not self.why_not(scheduled, Site(at), programs=scheduled.target.processors):
                yield Site(at)

    def arguments(self, scheduled: Scheduled, site: Site) -> Iterator[Args]:
        """One program for each processor, and two."""
        yield from ({"programs": n * scheduled.target.processors} for n in (1, 2))

    def why_not(self, scheduled: Scheduled, site: Site, **args: Any) -> str:
        """The nest has a grid, whose places no fixed number of programs takes yet."""
        if site == EVERYWHERE or not nests_at(scheduled.draft, site):
            return no_such_place(self, site)
        nest = scheduled.draft.nests[site.nest - 1]
        if not body_inside_grid(nest)[0]:
            return f"{site} has no grid: one program runs it"
        if nest.programs:
            return f"{nest.programs} programs take the places of {site} already"
        return ""

    def rewritten(self, scheduled: Scheduled, site: Site, **args: Any) -> TileProgram:
        """The draft with this number of programs."""
        nest = scheduled.draft.nests[site.nest - 1]
        return with_nest(scheduled.draft, site, replace(nest, programs=args["programs"]))

    def read(self, words: Sequence[str]) -> Args:
        """One number."""
        return {"programs": read_number(words, "the number of programs")}
