"""narrow: the bounds of a mask become bounds of a loop, so fully masked iterations are left out.

before   for n in range(N):                      after   t8 = last(m)
          t2 = load(K[n,:])                              t9 = block(n,t8)
          t3 = dot(t1,t2)                                t10 = t9 + 1
          t4 = where(i >= j, t3, -inf)                   for n in range(0, t10):
          ...                                             t2 = load(K[n,:])
                                                          ...

An iteration is left out if it changes nothing: the mask is false everywhere, and every value that
the loop folds is then the identity of its fold (dead_iterations.py). The range of the loop follows
from the mask (mask_ranges.py) and holds every block with a point where the mask is true. The mask
stays in the loop for these blocks. If data along the loop's dim decide, such as the numbers of
documents, a small nest before finds the range (scan_nest.py), unless the move is applied ``alone``.
Saves the loads and the arithmetic of the iterations that are left out; costs a few scalar
operations before the loop.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache, reduce
from typing import Any, ClassVar

from blockbuster.emit.closing.hoist import hoist
from blockbuster.emit.schedule.base import Args, LoopMove
from blockbuster.emit.schedule.bounds import Range
from blockbuster.emit.schedule.conditions import Condition, Formulas, conditions, formulas_of
from blockbuster.emit.schedule.dead_iterations import changes_something
from blockbuster.emit.schedule.mask_ranges import ALL, MaskRanges, both, either
from blockbuster.emit.schedule.scan_nest import ScanWriter
from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.emit.schedule.site import Site, known_loop, loops_of, of_body, with_body
from blockbuster.emit.schedule.span_tiles import Around, SpanWriter
from blockbuster.emit.schedule.words import Form
from blockbuster.emit.tile.dataflow import (
    defined,
    folded,
    fresh_names,
    replaced_by,
    workspaces_in_order,
)
from blockbuster.emit.tile.each_nest import KEPT, Body, Same
from blockbuster.emit.tile.program import For, Let, Nest, Stmt, Tile, TileProgram, statements
from blockbuster.emit.tile.scans import scans_all
from blockbuster.ir.expr import PREDICATES, Expr, functions_of
from blockbuster.ir.ops import Pointwise
from blockbuster.ir.types import Dim


class Narrow(LoopMove):
    """Let a loop run over the blocks only in which its masks are true somewhere.

    ``alone``: as far as it is known without a nest before that looks through data.
    """

    name: ClassVar[str] = "narrow"
    form: ClassVar[Form] = Form("[alone]", "alone")

    def arguments(self, scheduled: Scheduled, site: Site) -> Iterator[Args]:
        """As it is, and without a nest before where that bounds the loop, too."""
        yield {}
        if not self.why_not(scheduled, site, alone=True):
            yield {"alone": True}

    def not_here(self, scheduled: Scheduled, site: Site, loop: For, /, **args: Any) -> str:
        """Dead iterations change nothing, and the mask bounds where they are."""
        return not_narrowable(scheduled.draft, site, **args)

    def rewritten(self, scheduled: Scheduled, site: Site, **args: Any) -> TileProgram:
        """The loop with a span, behind the statements that compute it."""
        return narrowed(scheduled.draft, site, **args)


def not_narrowable(program: TileProgram, site: Site, *, alone: bool = False) -> str:
    """Why the loop at ``site`` has to run over all of its blocks, or "".

    ``alone``: no nest that looks through data is put before.
    """
    loop = known_loop(program, site)
    if loop.parallel:
        return f"the iterations over {loop.dim} are parallel: each has something to store"
    if loop.span is not None:
        return f"the loop over {loop.dim} is narrowed already"
    if reason := scans_all(loop):
        return reason
    if not is_masked(program.nests[site.nest - 1]):
        return no_mask(loop)
    return _not_bounded(program, site, alone=alone)


@of_body
def _not_bounded(program: TileProgram, site: Site, *, alone: bool) -> str:
    """Why the masks do not bound the loop at ``site``, or ""."""
    program, loop, formulas = looked_into(program, site)
    found, reason = emptying(loop, formulas)
    if reason:
        return reason
    if not known_range(found, writer_of(loop, formulas, program, alone)).bounded:
        return f"the mask of the loop over {loop.dim} bounds no range of its blocks"
    return ""


def narrowed(program: TileProgram, site: Site, *, alone: bool = False) -> TileProgram:
    """``program`` with a span for the loop at ``site``, which has to be narrowable."""
    program, loop, formulas = looked_into(program, site)
    writer = writer_of(loop, formulas, program, alone)
    found, _ = emptying(loop, formulas)
    span = writer.span(known_range(found, writer))
    made = (*writer.made, replace(loop, span=span))
    program = with_body(program, site, replaced_by(formulas.nest.body, loop, made))
    return _with_scans(program, site, writer)


def _with_scans(program: TileProgram, site: Site, writer: SpanWriter) -> TileProgram:
    """``program`` with the nests that ``writer`` needs before the one of ``site``."""
    if writer.scans is None or not writer.scans.made:
        return program
    scans = tuple(writer.scans.made.values())
    at, buffers = site.nest - 1, tuple(view.buffer for _, views in scans for view in views)
    nests = (*program.nests[:at], *(nest for nest, _ in scans), *program.nests[at:])
    spaces = (*program.workspaces, *buffers)
    return workspaces_in_order(replace(program, nests=nests, workspaces=spaces))


def all_narrowed(program: TileProgram) -> TileProgram:
    """``program`` with a span for every loop that can have one without another nest."""
    for site, _ in list(loops_of(program)):
        if not not_narrowable(program, site, alone=True):
            program = narrowed(program, site, alone=True)
    return program


def looked_into(program: TileProgram, site: Site) -> tuple[TileProgram, For, Formulas]:
    """``program`` with what does not change in loops moved before them, its loop at ``site``, and
    the formulas of that nest.
    """
    program = hoist(program)
    return program, known_loop(program, site), formulas_of(program.nests[site.nest - 1])


def is_masked(nest: Nest) -> bool:
    """True if ``nest`` makes truth values, or uses them."""
    return _is_masked(Same(nest.body))


@lru_cache(maxsize=KEPT)
def _is_masked(body: Same[Body]) -> bool:
    return any(map(compares, statements(body.one)))


def compares(stmt: Stmt) -> bool:
    """True if ``stmt`` makes a truth value, or uses one."""
    if not isinstance(stmt, Let) or not isinstance(stmt.op, Pointwise):
        return False
    return not PREDICATES.isdisjoint(functions_of(stmt.op.expr))


def no_mask(loop: For) -> str:
    """The reason given for a loop without a mask."""
    return f"no mask in the loop over {loop.dim} differs from block to block"


Emptying = tuple[tuple[Condition, ...], ...]
"""Sets of conditions; where all of one set are as they are when dead, an iteration is idle."""


def emptying(loop: For, formulas: Formulas) -> tuple[Emptying, str]:
    """The mask that makes iterations of ``loop`` idle; nothing, and the reason, if there is none.

    Each condition that does so alone, else as few as do it together.
    """
    found = conditions(loop, formulas)
    if not found:
        return (), no_mask(loop)

    def changes(dead: tuple[Condition, ...]) -> str:
        assumed: Mapping[Expr, float] = {one.formula: one.dead for one in reversed(dead)}
        return changes_something(loop, formulas, assumed)

    alone = tuple((one,) for one in found if not changes((one,)))
    if alone:
        return alone, ""
    if reason := changes(found):
        return (), reason
    needed = found
    for one in found:
        fewer = tuple(other for other in needed if other is not one)
        if not changes(fewer):
            needed = fewer
    return (needed,), ""


def known_range(found: Emptying, writer: SpanWriter) -> Range:
    """A range that holds all iterations that are not idle, as far as known before the loop."""
    solver = MaskRanges(writer.formulas, writer.dim)

    def alive(dead: tuple[Condition, ...]) -> Range:
        return reduce(either, (solver.of(one.formula, not one.dead) for one in dead))

    whole = reduce(both, map(alive, found), ALL)
    return Range(writer.known(whole.low), writer.known(whole.high))


def writer_of(loop: For, formulas: Formulas, program: TileProgram, alone: bool) -> SpanWriter:
    """The writer of the span of ``loop``, a loop of the nest of ``formulas``."""
    made = around(loop, formulas.nest.body, formulas.nest.grid)
    assert made is not None
    names = fresh_names(program)
    scans = (formulas, loop.dim, made.loops, program.units, names, loop.origin)
    writer = None if alone else ScanWriter(*scans)
    return SpanWriter(formulas, loop.dim, made, names, writer, loop.origin)


def around(
    loop: For,
    body: tuple[Stmt, ...],
    loops: tuple[Dim, ...],
    tiles: frozenset[Tile] = frozenset(),
) -> Around | None:
    """The tiles made before ``loop``; None if ``body``, inside ``loops``, does not hold it."""
    for stmt in body:
        if stmt is loop:
            inside = tuple(statements(loop.body))
            changing = {tile for s in inside for tile in folded(s)}
            dims = tuple(s.dim for s in inside if isinstance(s, For))
            return Around(tiles - changing, loops, dims)
        if isinstance(stmt, For):
            found = around(loop, stmt.body, (*loops, stmt.dim), tiles)
            if found is not None:
                return found
        tiles |= {tile for tile in (defined(stmt),) if tile is not None}
    return None
