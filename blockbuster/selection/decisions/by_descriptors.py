"""Which kernels load the operands of dots by descriptors: those that run long enough to pay.

One instruction loads a tile then, but the host makes one descriptor for each array and launch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from blockbuster.costs import known_time
from blockbuster.emit.schedule.descriptors import not_described
from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.emit.schedule.script import BY_NAME
from blockbuster.emit.schedule.site import Applied, loop_at
from blockbuster.emit.schedule.stage import Stage, staged_loads
from blockbuster.emit.tile.shared_memory import tile_bytes
from blockbuster.emit.tile.tiling import tiling_of
from blockbuster.ir.dtypes import FLOAT8
from blockbuster.selection.cost import Cost
from blockbuster.selection.decisions.persistent import may_take_turns, persistent
from blockbuster.selection.priors import PRIORS


def by_descriptors(
    scheduled: Scheduled, cost: Cost, *, before: Scheduled | None = None
) -> Scheduled:
    """``scheduled``, which costs ``cost``, with the stages of long kernels by descriptors.

    Loops of which no descriptor takes an array keep their pointers. ``before``: the same before its
    first stages, so that no other move is made again.
    """
    begun = before or replace(scheduled, draft=scheduled.start, moves=())
    times = [known_time(work, cost.machine).seconds * 1e6 for work in cost.works]
    long = [number for number, time in enumerate(times, start=1) if time >= PRIORS.descriptor_us]
    shorter = [
        number
        for number, (time, work) in enumerate(zip(times, cost.works, strict=True), start=1)
        if PRIORS.descriptor_in_turn_us <= time < PRIORS.descriptor_us
        and may_take_turns(work, cost.machine)
    ]
    if shorter:
        turned = persistent(_described(scheduled, [*long, *shorter], begun)).draft.nests
        long += [number for number in shorter if turned[number - 1].programs]
    return _described(scheduled, long, begun)


def _described(scheduled: Scheduled, long: Sequence[int], begun: Scheduled) -> Scheduled:
    """``scheduled`` with the stages of these kernels by descriptors, where they can be.

    ``begun``: the same after its first moves, none of which makes stages.
    """
    made, known = begun, len(begun.moves)
    assert scheduled.moves[:known] == begun.moves, "`before` does not begin `scheduled`"
    lines = scheduled.moves[known:]
    if not any(_is_stage(line, long) for line in lines):
        return scheduled
    for line in lines:
        move, after = BY_NAME[line.move], None
        if _is_stage(line, long) and _are_wide(made, line):
            _, after = move.tried(made, line.site, **{**line.args, "described": True})
        made = after or move.apply(made, line.site, **line.args)
    return made


def _is_stage(line: Applied, nests: Sequence[int]) -> bool:
    return line.move == Stage.name and line.site.nest in nests


def _are_wide(scheduled: Scheduled, line: Applied) -> bool:
    """True if the tiles that the loop of ``line`` loads ahead by descriptors are wide enough."""
    loop = loop_at(scheduled.draft, line.site)
    assert loop is not None
    tiling = tiling_of(scheduled.draft, scheduled.draft.nests[line.site.nest - 1])
    loads = staged_loads(loop, tiling)
    taken = (load.target for load in loads if not not_described(load, tiling, scheduled.target))
    wide = PRIORS.descriptor_tile_bytes
    return all(tile_bytes(t, tiling) >= (wide // 2 if t.dtype == FLOAT8 else wide) for t in taken)
