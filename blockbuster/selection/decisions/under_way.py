"""Stages and steps of kernels of few programs: enough bytes under way, and the first ones soon.

A processor with one program has only that one's loads under way, and gets no more from memory than
these in the time that one takes: such a kernel gets more stages. The closed form knows how long
loads take on an idle device only.

A program computes nothing until its first step has been loaded, and its processor has nothing else
to do meanwhile. Half as long steps begin sooner, with as many bytes under way, and leave the next
kernel more shared memory. That is so where the kernel before leaves room (emit/tile/room.py), or
there is none: else LayerNorm and a product of 16 x 4096 x 4096 took an H200 12.7 microseconds
instead of 9.8, a chain whose first product runs ahead, too, 5.7 instead of 4.7.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from blockbuster.emit.schedule.block import BlockDims, Cut
from blockbuster.emit.schedule.recut import Recut
from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.emit.schedule.site import Applied, Site, loop_at
from blockbuster.emit.schedule.stage import MOST, Stage
from blockbuster.emit.schedule.warps import Warps
from blockbuster.emit.tile.program import Issue, statements
from blockbuster.emit.tile.shared_memory import tile_bytes
from blockbuster.emit.tile.tiling import tiling_of
from blockbuster.emit.tile.uses import is_matrix_dot
from blockbuster.ir.types import Dim
from blockbuster.selection.decisions.combining import blocks, programs
from blockbuster.selection.decisions.scripts import Scripts
from blockbuster.selection.price import priced
from blockbuster.selection.priors import PRIORS

BLOCK, RECUT, STAGE = BlockDims(), Recut(), Stage()


def under_way(scheduled: Scheduled) -> Scheduled:
    """``scheduled`` with more stages where a kernel has no more programs than there are processors.

    Its lines are applied anew, so it says what it said before but for the stages.
    """
    scripts = Scripts(scheduled)
    for at in range(len(scheduled.moves)):
        while _is_short(scheduled, line := scheduled.moves[at]):
            more = _with_stages(line, line.args["stages"] + 1)
            lines = (*scheduled.moves[:at], more, *scheduled.moves[at + 1 :])
            made = _as_good(scripts.after(lines), scheduled)
            if made is None:
                break
            scheduled = made
    return scheduled


def _with_stages(line: Applied, stages: int) -> Applied:
    return STAGE.line(line.site, **{**line.args, "stages": stages})


def finer_steps(scheduled: Scheduled) -> Scheduled:
    """``scheduled`` with half as long steps where they keep enough under way and cost no more."""
    sites = [line.site for line in _stages(scheduled)]
    staged = dict.fromkeys(site.nest for site in sites)
    for site in sites:
        line = next(line for line in _stages(scheduled) if line.site == site)
        if site.nest - 1 not in staged and _is_long(scheduled, line):
            scheduled = _halved(scheduled, line) or scheduled
    return scheduled


def _is_short(scheduled: Scheduled, line: Applied) -> bool:
    """True if the loop of a stage has too few bytes under way, and no other program helps."""
    if line.move != Stage.name or line.args["stages"] >= MOST:
        return False
    number, stages = line.site.nest, line.args["stages"]
    if programs(scheduled, scheduled.draft.nests[number - 1]) > scheduled.target.processors:
        return False
    if stages > iterations(scheduled, line):
        return False
    return bool(bytes_ahead(scheduled, line) * (stages - 1) < PRIORS.bytes_under_way)


def bytes_ahead(scheduled: Scheduled, line: Applied) -> int:
    """The bytes that an iteration of the loop of a stage loads ahead."""
    program = scheduled.program  # its workspaces have the dtype of the dots that read them
    nest = program.nests[line.site.nest - 1]
    tiling = tiling_of(program, nest)
    ahead = [stmt for stmt in statements(nest.body) if isinstance(stmt, Issue)]
    return sum(tile_bytes(issue.tile, tiling) for issue in ahead)


def iterations(scheduled: Scheduled, line: Applied) -> int:
    """Of the loop of a stage in one program, at most."""
    draft, loop = scheduled.draft, loop_at(scheduled.draft, line.site)
    assert loop is not None
    steps = blocks(scheduled, draft.nests[line.site.nest - 1], loop.dim)
    counts = [chunks.count for chunks in draft.chunks if chunks.number == loop.chunk]
    return -(-steps // counts[0]) if counts else steps


def _as_good(made: Scheduled | None, scheduled: Scheduled) -> Scheduled | None:
    """``made``; None where it does not fit, or takes longer than ``scheduled``."""
    if made is None:
        return None
    try:
        cost = priced(made)
        worse = cost.microseconds > PRIORS.stage_time_factor * priced(scheduled).microseconds
        return None if worse or cost.spills else made
    except ValueError:
        return None


def _stages(scheduled: Scheduled) -> list[Applied]:
    """The lines of loops whose loads run ahead."""
    return [line for line in scheduled.moves if line.move == Stage.name]


def _is_long(scheduled: Scheduled, line: Applied) -> bool:
    """True if a program that is alone on its processor takes long steps in the loop of a stage."""
    draft, loop = scheduled.draft, loop_at(scheduled.draft, line.site)
    nest = draft.nests[line.site.nest - 1]
    assert loop is not None
    tiling = tiling_of(draft, nest)
    lanes = tiling.block(loop.dim)
    dots = sum(is_matrix_dot(stmt, tiling) for stmt in loop.body)
    large = dots == 1 and bytes_ahead(scheduled, line) >= PRIORS.large_step_bytes
    alone = programs(scheduled, nest) <= scheduled.target.processors
    least = PRIORS.shortest_large_step if large else PRIORS.shortest_step
    return alone and lanes >= 2 * least and loop.span is None


def _halved(scheduled: Scheduled, line: Applied) -> Scheduled | None:
    """``scheduled`` with steps half as long; None if that does not go, or is not as good."""
    loop = loop_at(scheduled.draft, line.site)
    assert loop is not None
    nest, stages = line.site.nest, line.args["stages"]
    lanes = tiling_of(scheduled.draft, scheduled.draft.nests[nest - 1]).block(loop.dim) // 2
    left = 2 * iterations(scheduled, line)
    more = min(2 * stages - 1, MOST, left)
    step = bytes_ahead(scheduled, line)
    enough = min(PRIORS.bytes_under_way, step * (stages - 1))
    if more < left and step // 2 * (more - 1) < enough:
        return None
    lines = [_with_stages(line, more) if one == line else one for one in scheduled.moves]
    for near in _cut_shorter(lines, nest, loop.dim, lanes):
        made = _as_good(Scripts(scheduled).after(tuple(near)), scheduled)
        if made and _cut(scheduled, made) == {(nest, loop.dim): lanes}:
            cost = priced(made).microseconds
            return made if cost <= PRIORS.equal_time * priced(scheduled).microseconds else None
    return None


def _cut_shorter(lines: list[Applied], nest: int, dim: Dim, lanes: int) -> Iterator[list[Applied]]:
    """Moves by which the blocks of a dim in a nest have so many lanes: cut so, or cut anew."""
    yield [_blocked(line, dim, lanes) for line in lines]
    at = next(i for i, line in enumerate(lines) if line.move == Warps.name)
    yield [*lines[:at], RECUT.line(Site(nest), dim=dim, lanes=lanes), *lines[at:]]


def _blocked(line: Applied, dim: Dim, lanes: int) -> Applied:
    """A line with other lanes of ``dim``, if it is one of ``block`` that cuts it twice as long."""
    if line.move != BlockDims.name:
        return line
    cuts = (
        replace(cut, lanes=lanes) if cut == Cut(dim, 2 * lanes) else cut
        for cut in line.args["cuts"]
    )
    return BLOCK.line(line.site, cuts=tuple(cuts))


def _cut(before: Scheduled, after: Scheduled) -> dict[tuple[int, Dim], int]:
    """The lanes of all blocks that are others than before, by nest and dim."""
    pairs = zip(before.draft.nests, after.draft.nests, strict=True)
    return {
        (number, new.dim): new.lanes
        for number, (one, other) in enumerate(pairs, start=1)
        for old, new in zip(one.blocks, other.blocks, strict=True)
        if old != new
    }
