"""persist: a fixed number of programs take the places of a grid, one after the other.

before   forall m in range(M):          after   forall m in range(M):      # by 132 programs
          forall n in range(N):                  forall n in range(N):
           for k in range(K): ...                 for k in range(K): ...
           store(t1,Y[m,n])                       store(t1,Y[m,n])

As many programs as run at a time are started, and each takes the next place when it is done with
one. The loop over places and the loop inside it are one loop for the compiler: the loads of a place
run ahead while the results of the place before are stored. Otherwise a processor that has room for
one program waits for the first loads of each. Costs registers for what spans both.

Where no loop is inside, ``in 3 stages`` lets the loads of a place run two places ahead: what they
load lies in shared memory until then. It hides loads behind warps that meet several times a place,
such as those that take the mean of a row, and then its deviation.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, ClassVar

from blockbuster.emit.schedule.base import Args, NestMove
from blockbuster.emit.schedule.on_grid import body_inside_grid
from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.emit.schedule.site import Site, with_nest
from blockbuster.emit.schedule.stage import FEWEST
from blockbuster.emit.schedule.words import Form
from blockbuster.emit.tile.program import For, Let, Load, Nest, TileProgram, statements
from blockbuster.emit.tile.tiling import Tiling, tiling_of
from blockbuster.emit.tile.uses import is_matrix_dot
from blockbuster.ir.ops import Cast, Functional

STAGES = 3
"""Two places ahead: with four stages as fast, with two no faster than without."""


class Persist(NestMove):
    """Let a fixed number of programs take the places of a nest's grid in turn."""

    name: ClassVar[str] = "persist"
    form: ClassVar[Form] = Form("PROGRAMS [in STAGES stages]")

    def arguments(self, scheduled: Scheduled, site: Site) -> Iterator[Args]:
        """One program for each processor, and two; with loads ahead, where that is legal."""
        for count in (scheduled.target.processors, 2 * scheduled.target.processors):
            yield {"programs": count}
            if not self.why_not(scheduled, site, programs=count, stages=STAGES):
                yield {"programs": count, "stages": STAGES}

    def not_here(self, scheduled: Scheduled, site: Site, nest: Nest, /, **args: Any) -> str:
        """The nest has a grid, whose places no fixed number of programs takes yet.

        Beside dots a loop computes nothing else. Stages want loads, and no loop or dot inside the
        grid.
        """
        if not body_inside_grid(nest)[0]:
            return f"{site} has no grid: one program runs it"
        if nest.programs:
            return f"{nest.programs} programs take the places of {site} already"
        tiling = tiling_of(scheduled.draft, nest)
        reason = computing_beside_dots(nest, tiling)
        if reason or "stages" not in args:
            return reason
        return not_ahead(nest, args["stages"], str(site))

    def rewritten(self, scheduled: Scheduled, site: Site, **args: Any) -> TileProgram:
        """The draft with this number of programs."""
        nest = scheduled.draft.nests[site.nest - 1]
        stages = args.get("stages", 0)
        made = replace(nest, programs=args["programs"], stages=stages)
        return with_nest(scheduled.draft, site, made)


# predicates ------------------------------------------------------------------------


def computing_beside_dots(nest: Nest, tiling: Tiling) -> str:
    """Why Triton would get a loop over places wrong, or "": a target predicate.

    It makes one loop of the places and of a loop inside. Where dots meet other arithmetic there,
    results were wrong on an H100: bench/repro/persistent_statistics.py.
    """
    for loop in (stmt for stmt in statements(nest.body) if isinstance(stmt, For)):
        lets = [s for s in loop.body if isinstance(s, Let) and not isinstance(s.op, Cast)]
        dots = [let for let in lets if is_matrix_dot(let, tiling)]
        if dots and len(dots) < len(lets):
            return f"the loop over {loop.dim} computes beside its dots: Triton gets it wrong"
    return ""


def not_ahead(nest: Nest, stages: int, name: str) -> str:
    """Why the loads of a nest cannot run ahead of its places, or ""."""
    inside = body_inside_grid(nest)[1]
    if stages < FEWEST:
        return f"with {stages} stages no load runs ahead: give at least {FEWEST}"
    if any(isinstance(stmt, For) for stmt in inside):
        return f"{name} has loops: 'stage' lets their loads run ahead"
    if any(isinstance(stmt, Let) and stmt.op == Functional("dot") for stmt in inside):
        return f"{name} has dots: Triton's pipeliner may overwrite what they still read"
    return "" if any(isinstance(stmt, Load) for stmt in inside) else f"{name} loads nothing"
