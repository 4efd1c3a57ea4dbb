"""Schedules near a default one: other lanes of blocks, warps and stages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product

from blockbuster.emit.schedule.scheduled import Scheduled, unscheduled
from blockbuster.emit.schedule.script import checked_complete, replayed
from blockbuster.errors import EmitError
from blockbuster.selection.default_schedule import default_schedule

LANES = (64, 128)
WARPS = (4, 8)
STAGES = (2, 3, 4)


def nearby(scheduled: Scheduled) -> Iterator[Scheduled]:
    """Schedules of the same program for the same sizes, each once, in a fixed order."""
    looped = [b.dim for nest in scheduled.draft.nests for b in nest.blocks if not b.whole]
    dims = [dim for dim in dict.fromkeys(looped) if dim in scheduled.known][:3]
    for lanes in product(LANES, repeat=len(dims)):
        for warps in WARPS:
            try:
                made = default_schedule(
                    scheduled.start, scheduled.known, device=scheduled.target,
                    tiles=dict(zip(dims, lanes, strict=True)), warps=warps,
                )  # fmt: skip
            except EmitError:
                continue
            yield from _staged(made)


def _staged(made: Scheduled) -> Iterator[Scheduled]:
    """A schedule with several numbers of stages."""
    bare = unscheduled(made.start, made.known, made.target)
    for stages in STAGES:
        text = re.sub(r"(?m)^(stage .*) \d+$", rf"\1 {stages}", made.schedule)
        try:
            yield checked_complete(replayed(bare, text))
        except EmitError:
            continue
