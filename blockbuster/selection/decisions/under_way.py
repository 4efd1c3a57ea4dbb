"""How many stages kernels of few programs have: so many that enough bytes are under way.

A processor with one program has only that one's loads under way, and gets no more from memory than
these in the time that one takes. The closed form knows how long loads take on an idle device only.
"""

from __future__ import annotations

from dataclasses import replace

from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.emit.schedule.script import Line, parsed
from blockbuster.emit.schedule.site import loop_at
from blockbuster.emit.schedule.stage import MOST, Stage
from blockbuster.emit.tile.program import Issue, statements
from blockbuster.emit.tile.shared_memory import tile_bytes
from blockbuster.emit.tile.tiling import tiling_of
from blockbuster.selection.decisions.combining import blocks, programs
from blockbuster.selection.price import priced
from blockbuster.selection.priors import PRIORS


def under_way(scheduled: Scheduled) -> Scheduled:
    """``scheduled`` with more stages where a kernel has no more programs than there are processors.

    Its lines are applied anew, so it says what it said before but for the stages.
    """
    lines = list(parsed(scheduled.schedule))
    for at, line in enumerate(lines):
        while line.move.name == Stage.name and _is_short(scheduled, line):
            line = replace(line, args={**line.args, "stages": line.args["stages"] + 1})
            made = replayed_lines(scheduled, [*lines[:at], line, *lines[at + 1 :]])
            if made is None:
                break
            scheduled, lines[at] = made, line
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


def replayed_lines(scheduled: Scheduled, lines: list[Line]) -> Scheduled | None:
    """The schedule of these lines; None where it does not fit, or takes longer."""
    made = replace(scheduled, draft=scheduled.start, moves=())
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
