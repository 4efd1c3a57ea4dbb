"""Which kernels run beside the next one, by few programs: statistics of what a product reads.

A product that needs the statistics of rows behind its loop alone (``closing/place_waits.py``) may
begin with the kernel that makes them, if that takes a part of each processor: its programs all run
at once, two to a processor, and take the rows in turn. Otherwise the product's programs begin where
those of the rows have ended. On an H200 LayerNorm and a product of 2048 x 4096 x 1024 took 27.3
microseconds instead of 28.9, where sums of the weight's columns are kept (the product alone: 24.2).
By 132 programs it took 29.5, for the rows took longer than the product; by 528 27.6, by 1056 31.7.

Not where the product's programs take several rounds: with 8192 rows it took 131 instead of 129, as
each of them is slower while rows are read beside it. Nor where the product is short: a program has
read a row in the time of two steps of 128 lanes: 16 rows were too many beside 32 such steps. Where
a product summed over 1024 lanes, four rows to a program took 0.3 microseconds longer.
"""

from __future__ import annotations

from blockbuster.emit.schedule.persist import Persist
from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.emit.schedule.site import Site
from blockbuster.emit.tile.constants import kept_nests
from blockbuster.emit.tile.program import For, Issue, statements
from blockbuster.emit.tile.room import leaving_room
from blockbuster.emit.tile.waits import Wait
from blockbuster.ir.types import size_class
from blockbuster.selection.decisions.combining import programs

PERSIST = Persist()

BESIDE = 2
"""Programs to a processor that run beside a product."""

DEPTH = 384
"""Lanes that the product sums over for each row that a program reads beside it, at least."""


def beside(scheduled: Scheduled) -> Scheduled:
    """``scheduled`` with few programs for kernels that can run beside the next one."""
    nests, processors = scheduled.program.nests, scheduled.target.processors
    kept = kept_nests(scheduled.program)
    running = [at for at in range(len(nests)) if at not in kept]
    rooms = leaving_room([nests[at] for at in running])
    pairs = zip(running, running[1:], rooms, strict=False)
    for at, after in [(at, after) for at, after, room in pairs if room]:
        count, site = BESIDE * processors, Site(at + 1)
        places = programs(scheduled, scheduled.draft.nests[at])
        depth = _depth_before_it_waits(scheduled, after)
        if places <= count or DEPTH * -(-places // count) > depth:
            continue
        if not PERSIST.why_not(scheduled, site, programs=count):
            scheduled = PERSIST.apply(scheduled, site, programs=count)
    return scheduled


def _depth_before_it_waits(scheduled: Scheduled, at: int) -> int:
    """The lanes of the loop whose loads run ahead, before a nest waits; 0 if there is none, or if
    its programs do not all run at once.
    """
    nest = scheduled.program.nests[at]
    at_once = programs(scheduled, scheduled.draft.nests[at]) <= scheduled.target.processors
    kinds = [type(stmt) for stmt in nest.body]
    if not at_once or Wait not in kinds:
        return 0
    early = nest.body[: kinds.index(Wait)]
    loops = (stmt for stmt in early if isinstance(stmt, For))
    ahead = (loop for loop in loops if any(isinstance(s, Issue) for s in statements(loop.body)))
    return max((scheduled.sizes[size_class(loop.dim)] for loop in ahead), default=0)
