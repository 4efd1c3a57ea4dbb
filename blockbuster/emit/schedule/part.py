"""part: blocks of a loop in which a mask is true everywhere get their own loop, without the mask.

before   for n in range(0, t9):           after   t10 = block(n,first(m) + 1)
          t3 = dot(t1,t2)                         t11 = min(t10, t9)
          t4 = where(i >= j, t3, -inf)            for n in range(0, t11):
          ...                                      t3 = dot(t1,t2)
                                                   ...                      (t3 where t4 was)
                                                  for n in range(t11, t9):
                                                   t3 = dot(t1,t2)
                                                   t4 = where(i >= j, t3, -inf)
                                                   ...

The mask tells which blocks these are, as for ``narrow`` (whole_blocks.py). The blocks before and
behind them keep the mask; all loops fold into the same accumulators, in the same order, so every
result is the same to the bit. A last block with lanes past the end of the dim does not count as
whole: whole blocks run without guards and without masks on their loads, too. For a serial loop over
a ragged dim, this alone makes the move worth while. Saves the comparisons and choices in whole
blocks; costs the code of another loop, which starts its loads when it begins.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

from blockbuster.emit.schedule.base import LoopMove
from blockbuster.emit.schedule.conditions import conditions
from blockbuster.emit.schedule.known_masks import under
from blockbuster.emit.schedule.narrow import is_masked, looked_into, no_mask, writer_of
from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.emit.schedule.site import Site, of_body, with_body
from blockbuster.emit.schedule.span_tiles import SpanWriter
from blockbuster.emit.schedule.whole_blocks import whole_blocks
from blockbuster.emit.tile.chains import chained
from blockbuster.emit.tile.dataflow import defined, mapped, replaced_by, retargeted
from blockbuster.emit.tile.program import For, Issue, Span, TileProgram, statements
from blockbuster.emit.tile.scans import scans_all
from blockbuster.emit.tile.spanned import parts_of
from blockbuster.emit.tile.tiling import tiling_of


class Part(LoopMove):
    """Let the blocks of a loop that its masks leave whole run without them."""

    name: ClassVar[str] = "part"

    def not_here(self, scheduled: Scheduled, site: Site, loop: For, /, **args: Any) -> str:
        """Something is known, before the loop, of where its masks leave all points."""
        program = scheduled.draft
        if reason := scans_all(loop) or chained(loop):
            return reason
        nest = program.nests[site.nest - 1]
        if len(parts_of(loop, nest)) > 1:
            return f"the loop over {loop.dim} is one of several parts already"
        if any(isinstance(stmt, Issue) for stmt in statements(loop.body)):
            return f"loads of the loop over {loop.dim} run ahead: part it before that"
        if is_ragged_loop(program, site, loop):
            return ""
        return _not_whole(program, site) if is_masked(nest) else no_mask(loop)

    def rewritten(self, scheduled: Scheduled, site: Site, **args: Any) -> TileProgram:
        """Two or three loops, behind the statements that compute where one ends."""
        return parted(scheduled.draft, site)


@of_body
def _not_whole(program: TileProgram, site: Site) -> str:
    """Why the masks leave no block of the loop at ``site`` whole, or ""."""
    program, loop, formulas = looked_into(program, site)
    if not conditions(loop, formulas):
        return no_mask(loop)
    writer = writer_of(loop, formulas, program, alone=True)
    if not whole_blocks(loop, formulas, writer).known:
        return f"of no block of {loop.dim} it is known that the mask leaves it whole"
    return ""


def is_ragged_loop(program: TileProgram, site: Site, loop: For) -> bool:
    """True for a serial loop whose last block may have lanes past the end of its dim."""
    ragged = tiling_of(program, program.nests[site.nest - 1]).ragged
    return not (loop.parallel or loop.full) and ragged(loop.dim)


def parted(program: TileProgram, site: Site) -> TileProgram:
    """``program`` with the loop at ``site``, which has to be partable, in parts."""
    program, loop, formulas = looked_into(program, site)
    writer = writer_of(loop, formulas, program, alone=True)
    found, ragged = whole_blocks(loop, formulas, writer), is_ragged_loop(program, site, loop)
    last, first = writer.span(found.others)
    if ragged:
        short = writer.short()
        last = short if last is None else writer.within(last, (None, short))
    before, whole, behind = _spans(loop, (last, first), writer)
    parts = [_copied(replace(loop, span=before), writer)] if before is not None else []
    body = under(loop.body, found.known, formulas)
    parts.append(_copied(replace(loop, span=whole, body=body, full=ragged), writer))
    parts += [replace(loop, span=behind)] if behind is not None else []
    made = replaced_by(formulas.nest.body, loop, (*writer.made, *parts))
    return with_body(program, site, made)


def _spans(loop: For, ends: Span, writer: SpanWriter) -> tuple[Span | None, Span, Span | None]:
    """Those of the blocks before the whole ones, of the whole ones, and of those behind.

    ``ends``: the first block that is not whole behind them, and the one behind the last before.
    """
    begin, end = loop.span or (None, None)
    behind, before = ends
    first, before_them, behind_them = begin, None, None
    if before is not None:
        first = writer.within(before, (begin, end))
        before_them = (begin, first)
    stop = end
    if behind is not None:
        stop = writer.within(behind, (first, end))
        behind_them = (stop, end)
    return before_them, (first, stop), behind_them


def _copied(loop: For, writer: SpanWriter) -> For:
    """``loop`` with names of its own for the tiles that it makes."""
    made = (tile for stmt in statements(loop.body) if (tile := defined(stmt)) is not None)
    new = {tile: replace(tile, name=next(writer.names)) for tile in made}
    return replace(loop, body=mapped(loop.body, lambda stmt: retargeted(stmt, new)))
