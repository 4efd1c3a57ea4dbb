"""Which grids are walked in groups of blocks: those whose programs then load less from memory.

Programs that run at the same time read some tiles together, once from memory. Row by row they share
few rows and most of the columns; in groups, as many rows as columns. This matters if arrays do not
fit in the cache and more programs are started than run at a time. The counts of ``costs`` decide.
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import itemgetter

from blockbuster.costs.cached import fits, from_memory
from blockbuster.costs.work import Work, work, work_of_nest
from blockbuster.emit.schedule.group_blocks import GroupBlocks
from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.emit.schedule.site import Site
from blockbuster.machines import Machine, machine_of

GROUP = GroupBlocks()

SIZES = (8, 4, 16)
"""Blocks of a group that are looked at; of equally good ones the first."""

ENOUGH = 0.9
"""The bytes from memory, of those row by row, up to which groups are worth their divisions: the
counts know no better which programs run at a time.
"""


def grouped(scheduled: Scheduled) -> Scheduled:
    """``scheduled``, complete but for groups, with those of each nest that save most.

    The order of programs does not matter for arrays without elements, whose work is not counted.
    """
    sites = tuple(GROUP.sites(scheduled))
    if not sites or not all(scheduled.known.values()):
        return scheduled
    machine = machine_of(scheduled.target.name)
    for at, alone in enumerate(work(scheduled), start=1):
        before = _loaded(alone, machine)
        here = [site for site in sites if site.nest == at]
        made = [one for site in here if before for one in _candidates(scheduled, site)]
        loaded = [(_loaded(work_of_nest(one, at), machine), one) for one in made]
        bytes_, least = min(loaded, key=itemgetter(0), default=(0, None))
        if least and bytes_ <= ENOUGH * before:
            scheduled = least
    return scheduled


def _candidates(scheduled: Scheduled, site: Site) -> Iterator[Scheduled]:
    for blocks in SIZES:
        yield GROUP.apply(scheduled, site, blocks=blocks)


def _loaded(alone: Work, machine: Machine) -> int:
    """Bytes from memory; 0 where the order of programs does not matter, or none fits."""
    if alone.footprint.misfit(machine):
        return 0
    wave = machine.processors * alone.footprint.resident(machine)
    if alone.programs <= wave or fits(alone, machine.tiers[1]):
        return 0
    return sum(from_memory(alone, machine, wave).values())
