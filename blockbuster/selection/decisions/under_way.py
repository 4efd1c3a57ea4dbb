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
from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.emit.schedule.script import Line, parsed
from blockbuster.emit.schedule.site import loop_at
from blockbuster.emit.schedule.stage import MOST, Stage
from blockbuster.emit.schedule.warps import Warps
from blockbuster.emit.tile.program import Issue, statements
from blockbuster.emit.tile.shared_memory import tile_bytes
from blockbuster.emit.tile.tiling import tiling_of
from blockbuster.emit.tile.uses import is_matrix_dot
from blockbuster.ir.types import Dim
from blockbuster.selection.decisions.combining import blocks, programs
from blockbuster.selection.price import priced
from blockbuster.selection.priors import PRIORS


def under_way(scheduled: Scheduled) -> Scheduled:
    """``scheduled`` with more stages where a kernel has no more programs than there are processors.

    Its lines are applied anew, so it says what it said before but for the stages.
    """
    lines, before, done = list(parsed(scheduled.schedule)), _bare(scheduled), 0
    for at, line in enumerate(lines):
        while line.move.name == Stage.name and _is_short(scheduled, line):
            for known in lines[done:at]:  # the lines before this one stay as they are
                before = known.move.apply(before, known.site, **known.args)
            done = at
            line = replace(line, args={**line.args, "stages": line.args["stages"] + 1})
            made = replayed_lines(scheduled, [line, *lines[at + 1 :]], before)
            if made is None:
                break
            scheduled, lines[at] = made, line
    return scheduled


def finer_steps(scheduled: Scheduled) -> Scheduled:
    """``scheduled`` with half as long steps where they keep enough under way and cost no more."""
    sites = [line.site for line in _stages(scheduled)]
    staged = dict.fromkeys(site.nest for site in sites)
    for site in sites:
        line = next(line for line in _stages(scheduled) if line.site == site)
        if site.nest - 1 not in staged and _is_long(scheduled, line):
            scheduled = _halved(scheduled, line) or scheduled
    return scheduled


def _is_short(scheduled: Scheduled, line: Line) -> bool:
    """True if the loop of a stage has too few bytes under way, and no other program helps."""
    number, stages = line.site.nest, line.args["stages"]
    if stages >= MOST:
        return False
    if programs(scheduled, scheduled.draft.nests[number - 1]) > scheduled.target.processors:
        return False
    if stages > iterations(scheduled, line):
        return False
    return bool(bytes_ahead(scheduled, line) * (stages - 1) < PRIORS.bytes_under_way)


def bytes_ahead(scheduled: Scheduled, line: Line) -> int:
    """The bytes that an iteration of the loop of a stage loads ahead."""
    program = scheduled.program  # its workspaces have the dtype of the dots that read them
    nest = program.nests[line.site.nest - 1]
    tiling = tiling_of(program, nest)
    ahead = [stmt for stmt in statements(nest.body) if isinstance(stmt, Issue)]
    return sum(tile_bytes(issue.tile, tiling) for issue in ahead)


def iterations(scheduled: Scheduled, line: Line) -> int:
    """Of the loop of a stage in one program, at most."""
    draft, loop = scheduled.draft, loop_at(scheduled.draft, line.site)
    assert loop is not None
    steps = blocks(scheduled, draft.nests[line.site.nest - 1], loop.dim)
    counts = [chunks.count for chunks in draft.chunks if chunks.number == loop.chunk]
    return -(-steps // counts[0]) if counts else steps


def _bare(scheduled: Scheduled) -> Scheduled:
    """``scheduled`` before its first line."""
    return replace(scheduled, draft=scheduled.start, moves=())


def replayed_lines(
    scheduled: Scheduled, lines: list[Line], before: Scheduled | None = None
) -> Scheduled | None:
    """The schedule of these lines, behind those of ``before``; None where it does not fit, or takes
    longer than ``scheduled``.
    """
    made = before or _bare(scheduled)
    for line in lines:
        _, after = line.move.tried(made, line.site, **line.args)
        if after is None:
            return None
        made = after
    try:
        cost = priced(made)
        worse = cost.microseconds > PRIORS.stage_time_factor * priced(scheduled).microseconds
        return None if worse or cost.spills else made
    except ValueError:
        return None


def _stages(scheduled: Scheduled) -> Iterator[Line]:
    """The lines of loops whose loads run ahead, with their present numbers."""
    return (line for line in parsed(scheduled.schedule) if line.move.name == Stage.name)


def _is_long(scheduled: Scheduled, line: Line) -> bool:
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


def _halved(scheduled: Scheduled, line: Line) -> Scheduled | None:
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
    lines = list(parsed(scheduled.schedule))
    lines[lines.index(line)] = replace(line, args={**line.args, "stages": more})
    for near in _cut_shorter(lines, nest, loop.dim, lanes):
        made = replayed_lines(scheduled, near)
        if made and _cut(scheduled, made) == {(nest, loop.dim): lanes}:
            cost = priced(made).microseconds
            return made if cost <= PRIORS.equal_time * priced(scheduled).microseconds else None
    return None


def _cut_shorter(lines: list[Line], nest: int, dim: Dim, lanes: int) -> Iterator[list[Line]]:
    """Moves by which the blocks of a dim in a nest have so many lanes: cut so, or cut anew."""
    yield [_blocked(line, dim, lanes) for line in lines]
    at = next(i for i, line in enumerate(lines) if line.move.name == Warps.name)
    yield [*lines[:at], *parsed(f"recut nest {nest} {dim} {lanes}"), *lines[at:]]


def _blocked(line: Line, dim: Dim, lanes: int) -> Line:
    """A line with other lanes of ``dim``, if it is one of ``block`` that cuts it twice as long."""
    if line.move.name != BlockDims.name:
        return line
    cuts = (
        replace(cut, lanes=lanes) if cut == Cut(dim, 2 * lanes) else cut
        for cut in line.args["cuts"]
    )
    return replace(line, args={**line.args, "cuts": tuple(cuts)})


def _cut(before: Scheduled, after: Scheduled) -> dict[tuple[int, Dim], int]:
    """The lanes of all blocks that are others than before, by nest and dim."""
    pairs = zip(before.draft.nests, after.draft.nests, strict=True)
    return {
        (number, new.dim): new.lanes
        for number, (one, other) in enumerate(pairs, start=1)
        for old, new in zip(one.blocks, other.blocks, strict=True)
        if old != new
    }
