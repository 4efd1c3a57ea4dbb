"""Which kernels begin before the kernel before has ended: the first, and readers of that one.

Programs of such a kernel start, compute their places and wait while the last programs of the kernel
before run: measured, a chain of small kernels then takes 1 to 2 microseconds less per kernel. A
kernel that reads nothing of the one before would compete with it instead of waiting. The first
kernel waits before it does anything, whatever ran before.
"""

from __future__ import annotations

from itertools import pairwise

from blockbuster.emit.schedule.overlap import Overlap
from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.emit.schedule.site import Site
from blockbuster.emit.tile.constants import kept_nests
from blockbuster.emit.tile.dataflow import loaded, stored

OVERLAP = Overlap()


def overlapped(scheduled: Scheduled) -> Scheduled:
    """``scheduled`` with a first nest that overlaps what ran before the program, and later nests
    that overlap the one before, where they load what it stores. Kept nests ran before all.
    """
    kept = kept_nests(scheduled.draft)
    numbered = enumerate(scheduled.draft.nests, start=1)
    first, *others = [(at, nest) for at, nest in numbered if at - 1 not in kept]
    readers = (
        number
        for (_, before), (number, nest) in pairwise((first, *others))
        if not loaded(nest.body).keys().isdisjoint(stored(before.body))
    )
    for site in map(Site, (first[0], *readers)):
        if not OVERLAP.why_not(scheduled, site):
            scheduled = OVERLAP.apply(scheduled, site)
    return scheduled
