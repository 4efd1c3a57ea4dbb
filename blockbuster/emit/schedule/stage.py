"""stage: the loads of a loop run ahead of the iterations that need them.

before   for n in range(N):               stage nest 1 N 3      for n in range(N):
          t2 = load(K[n])                                        issue k = load(K[n]), 2 ahead
          t3 = dot(t1,t2)                                        t2 = await k
                                                                 t3 = dot(t1,t2)

A tile on its way lies in shared memory, in one of as many slots as there are stages. Hides the
latency of memory behind the arithmetic of earlier iterations; costs shared memory. In a loop with
matrix dots, the loads that dots wait for run ahead; in other loops, all loads do. Triton's
pipeliner takes the same.

``by descriptors``, one thread asks the memory unit for a whole tile, instead of all threads for
some elements each: no addresses and masks in the loop, fewer registers, and zeros past the end for
free. Costs the host about a microsecond per launch to make each descriptor. Vectors keep their
pointers, and so do arrays whose strides or addresses do not suit a descriptor. A wait for such a
tile is a loop of its own, across which an assembler moves no instruction: where one would stand
among operators, all stand where an iteration begins.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any, ClassVar

from blockbuster.emit.schedule.base import Args, Attempt, LoopMove, no_such_place
from blockbuster.emit.schedule.descriptors import not_described
from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.emit.schedule.site import Site, known_loop, loops_of, with_body
from blockbuster.emit.schedule.words import Form
from blockbuster.emit.target.targets import Target
from blockbuster.emit.tile.changed import changed
from blockbuster.emit.tile.dataflow import operands, replaced_by, stored
from blockbuster.emit.tile.each_nest import KEPT, Body, Same
from blockbuster.emit.tile.next_block import Next
from blockbuster.emit.tile.program import (
    Await,
    Block,
    BlockOf,
    For,
    Issue,
    Let,
    Load,
    Nest,
    Stmt,
    Tile,
    TileProgram,
    statements,
)
from blockbuster.emit.tile.tiling import Tiling, tiling_of
from blockbuster.emit.tile.uses import Uses, is_matrix_dot
from blockbuster.ir.types import Dim

FEWEST = 2  # stages: the iteration that computes, and one whose loads are on their way

MOST = 6
"""Stages that are offered, at most: with short steps so many keep enough on its way."""


class Stage(LoopMove):
    """Issue the loads of a loop some iterations before they are awaited."""

    name: ClassVar[str] = "stage"
    form: ClassVar[Form] = Form("STAGES [by descriptors]", "described")
    number: ClassVar[str] = "stages"
    starts: ClassVar[tuple[int, ...]] = (FEWEST + 1,)  # so that two loads are on their way

    def sites(self, scheduled: Scheduled) -> Iterator[Site]:
        """Loops with loads that can run ahead."""
        for site, _ in loops_of(scheduled.draft):
            if not self.attempted(scheduled, site, stages=FEWEST)[0]:
                yield site

    def arguments(self, scheduled: Scheduled, site: Site) -> Iterator[Args]:
        """From two stages to six, by pointers and, where that is legal, by descriptors."""
        for number in range(FEWEST, MOST + 1):
            yield {"stages": number}
            if not self.why_not(scheduled, site, stages=number, described=True):
                yield {"stages": number, "described": True}

    def near(self, scheduled: Scheduled, site: Site, args: Args) -> Iterator[Args]:
        """One stage more or less, and as many the other way."""
        described = args.get("described", False)
        for other in self.arguments(scheduled, site):
            away = abs(other["stages"] - args["stages"])
            if away + (other.get("described", False) != described) == 1:
                yield other

    def not_here(self, scheduled: Scheduled, site: Site, loop: For, /, **args: Any) -> str:
        """The loop is innermost and serial, its arrays do not change, no tile is used otherwise."""
        if args["stages"] < FEWEST:
            return f"with {args['stages']} stages no load runs ahead: give at least {FEWEST}"
        nest = scheduled.draft.nests[site.nest - 1]
        tiling = tiling_of(scheduled.draft, nest)
        return (
            not_stageable(loop, tiling)
            or stored_meanwhile(loop, nest, tiling)
            or used_twice(loop, nest, tiling)
            or (args.get("described") and self._not_described(scheduled, loop, tiling))
            or ""
        )

    def attempted(self, scheduled: Scheduled, site: Site, **args: Any) -> Attempt:
        """The same for all schedules with this body of the nest and, by descriptors, its blocks."""
        draft = scheduled.draft
        if self.found(draft, site) is None:
            return no_such_place(self, site), None
        nest = draft.nests[site.nest - 1]
        described = args.get("described", False)
        blocks = nest.blocks if described else ()
        alone = Same(nest.body), blocks, draft.units, Same(scheduled.target)
        reason, body = _attempted(*alone, replace(site, nest=1), args["stages"], described)
        return reason, None if reason else with_body(draft, site, body)

    def _not_described(self, scheduled: Scheduled, loop: For, tiling: Tiling) -> str:
        """Why no matrix of ``loop`` can use a descriptor, or not all can, or ""."""
        loads = staged_loads(loop, tiling)
        matrices = [load for load in loads if len(tiling.lanes(load.target)) > 1]
        reasons = (not_described(load, tiling, scheduled.target) for load in matrices or loads)
        return next(filter(None, reasons), "")

    def rewritten(self, scheduled: Scheduled, site: Site, **args: Any) -> TileProgram:
        """The loop with its loads as issue and await statements."""
        draft = scheduled.draft
        loop, nest = known_loop(draft, site), draft.nests[site.nest - 1]
        tiling = tiling_of(draft, nest)
        asked = args.get("described", False)
        described = {
            load.target: asked and not not_described(load, tiling, scheduled.target)
            for load in staged_loads(loop, tiling)
        }
        made = _staged(loop, nest, args["stages"], described, tiling)
        return with_body(draft, site, replaced_by(nest.body, loop, (made,)))


@lru_cache(maxsize=KEPT)
def _attempted(
    body: Same[Body],
    blocks: tuple[Block, ...],
    units: tuple[Dim, ...],
    target: Same[Target],
    site: Site,
    stages: int,
    described: bool,
) -> tuple[str, Body]:
    """Why a loop of the only nest of a program cannot have stages, or the body in which it has."""
    program = TileProgram((), (), (), (Nest(body.one, blocks=blocks),), units)
    alone, move = Scheduled(program, program, {}, target.one), Stage()
    reason = move.why_not(alone, site, stages=stages, described=described)
    if reason:
        return reason, body.one
    made = move.rewritten(alone, site, stages=stages, described=described)
    return "", made.nests[0].body


def staged_loads(loop: For, tiling: Tiling) -> tuple[Load, ...]:
    """The loads of ``loop`` that run ahead: those that its dots wait for, or all without dots.

    And that of a chain, which says what the others load.
    """
    loads = tuple(stmt for stmt in loop.body if isinstance(stmt, Load))
    dots = [stmt for stmt in loop.body if is_matrix_dot(stmt, tiling)]
    if not dots:
        return loads
    needed: dict[Tile, None] = {}
    for stmt in reversed(loop.body):
        target = stmt.target if isinstance(stmt, Let | BlockOf) else None
        if stmt in dots or isinstance(stmt, Next) or target in needed:
            needed.update(dict.fromkeys(operands(stmt)))
    return tuple(load for load in loads if load.target in needed)


# predicates ------------------------------------------------------------------------


def not_stageable(loop: For, tiling: Tiling) -> str:
    """Why no load of ``loop`` can run ahead, or ""."""
    if loop.parallel:
        return f"the iterations over {loop.dim} are parallel: none runs before another"
    if any(isinstance(stmt, For) for stmt in loop.body):
        return f"the loop over {loop.dim} holds another loop"
    if any(isinstance(stmt, Issue) for stmt in loop.body):
        return f"the loop over {loop.dim} has stages already"
    if not staged_loads(loop, tiling):
        return f"the loop over {loop.dim} has no load that its arithmetic waits for"
    return ""


def stored_meanwhile(loop: For, nest: Nest, tiling: Tiling) -> str:
    """Why a load that runs ahead could read too early, or ""."""
    written = stored(nest.body)
    for load in staged_loads(loop, tiling):
        if load.view.buffer in written:
            return f"{load.view.buffer.name} is stored in the same nest"
    return ""


def used_twice(loop: For, nest: Nest, tiling: Tiling) -> str:
    """Why Triton's pipeliner would break ``loop``, or "": a target predicate.

    It overwrites a tile that feeds both the matrix units and arithmetic while the matrix units
    still read it: bench/repro/pipeliner_race.py.
    """
    name = Uses(nest, tiling).read_in_two_ways(loop)
    return f"{name} feeds the matrix units and arithmetic: Triton's pipeliner races" if name else ""


def _staged(
    loop: For, nest: Nest, stages: int, described: Mapping[Tile, bool], tiling: Tiling
) -> For:
    """``loop`` with the loads of the tiles that ``described`` has as issues and awaits."""
    ahead = {load.target: load for load in staged_loads(loop, tiling)}
    tokens = dict(zip(ahead, _tokens(ahead.values(), nest), strict=False))
    issues = tuple(
        Issue(tokens[tile], tile, load.view, stages - 1, stages, load.origin, described[tile])
        for tile, load in ahead.items()
    )
    awaits = {tile: Await(tile, token, ahead[tile].origin) for tile, token in tokens.items()}
    body = tuple(awaits.get(s.target, s) if isinstance(s, Load) else s for s in loop.body)
    first = tuple(awaits[tile] for tile in awaits if described[tile])
    if _cut_arithmetic(body, first, tiling):
        body = (*first, *(stmt for stmt in body if stmt not in first))
    return changed(loop, body=(*issues, *body))


def _cut_arithmetic(body: tuple[Stmt, ...], awaits: tuple[Await, ...], tiling: Tiling) -> bool:
    """True if one of ``awaits`` stands behind an operator that is no dot."""
    last = max((at for at, stmt in enumerate(body) if stmt in awaits), default=0)
    return any(isinstance(stmt, Let) and not is_matrix_dot(stmt, tiling) for stmt in body[:last])


def _tokens(loads: Iterable[Load], nest: Nest) -> Iterator[str]:
    """A name for each: that of its array, with a number where the nest has it already."""
    taken = dict.fromkeys(s.token for s in statements(nest.body) if isinstance(s, Issue))
    for load in loads:
        name = load.view.buffer.name
        words = (name, *(f"{name}.{number}" for number in range(2, len(taken) + 3)))
        token = next(word for word in words if word not in taken)
        taken[token] = None
        yield token
