"""Which grids are walked in groups of blocks: those whose programs then load less from memory.

Programs that run at the same time read some tiles together, once from memory. Row by row they share
few rows and most of the columns; in groups, as many rows as columns. This matters if arrays do not
fit in the cache and more programs are started than run at a time. The counts of ``costs`` decide.

Where masks leave some programs less to do, the order decides, too, which of them share a processor:
heads in groups bring programs of equal length next to each other. There the price decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import inf

from blockbuster.costs.cached import fits, from_memory
from blockbuster.costs.work import Work, work
from blockbuster.emit.schedule.group_blocks import GroupBlocks
from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.emit.schedule.site import Site
from blockbuster.emit.tile.grid_order import walked
from blockbuster.emit.tile.group import Group
from blockbuster.emit.tile.program import Nest
from blockbuster.machines import Machine
from blockbuster.selection.decisions.combining import programs
from blockbuster.selection.price import priced
from blockbuster.selection.priors import PRIORS

GROUP = GroupBlocks()


def grouped(scheduled: Scheduled) -> Scheduled:
    """``scheduled``, complete but for groups, with the groups of each nest that save most.

    The order of programs does not matter for arrays without elements, whose work is not counted,
    nor where each program has a processor for itself.
    """
    nests, processors = scheduled.draft.nests, scheduled.target.processors
    many = [programs(scheduled, nest) > processors for nest in nests]
    sites = tuple(site for site in GROUP.sites(scheduled) if many[site.nest - 1])
    if not sites or not all(scheduled.known.values()):
        return scheduled
    machine, nests = scheduled.target.machine, scheduled.program.nests
    for at, (alone, nest) in enumerate(zip(work(scheduled), nests, strict=True), start=1):
        before = _loaded(alone, machine)
        own = [site for site in sites if site.nest == at and before]
        here = [(site, size) for site in own for size in PRIORS.group_sizes]
        loaded = [_loaded(_walked(alone, nest, *one), machine) for one in here]
        least = min(range(len(here)), key=loaded.__getitem__, default=None)
        stored = sum(alone.stored.values())
        most = PRIORS.group_bytes_part * (before + stored)
        if least is not None and loaded[least] + stored <= most:
            site, size = here[least]
            scheduled = GROUP.apply(scheduled, site, blocks=size)
        elif any(phase.each for phase in alone.phases):
            scheduled = _balanced(scheduled, [site for site in sites if site.nest == at])
    return scheduled


def _balanced(scheduled: Scheduled, sites: Sequence[Site]) -> Scheduled:
    """``scheduled`` with the groups at one of these sites for which its price is least."""
    sizes = PRIORS.group_sizes_by_length
    tried = [GROUP.apply(scheduled, site, blocks=size) for site in sites for size in sizes]
    prices = [_price(one) for one in tried]
    best = min(range(len(tried)), key=prices.__getitem__, default=None)
    before = _price(scheduled)
    if best is None or before == inf or prices[best] > PRIORS.group_time_part * before:
        return scheduled
    return tried[best]


def _price(scheduled: Scheduled) -> float:
    try:
        return priced(scheduled).microseconds
    except ValueError:  # a program does not fit, which its compiler says
        return inf


def _walked(alone: Work, nest: Nest, site: Site, blocks: int) -> Work:
    """The work of ``nest``, as it is printed, with groups: its grid is walked in another order."""
    in_groups = replace(nest, group=Group(site.loop, blocks))
    return replace(alone, grid=walked(in_groups, dict(alone.grid)))


def _loaded(alone: Work, machine: Machine) -> int:
    """Bytes from memory; 0 where the order of programs does not matter, or none fits."""
    if alone.footprint.misfit(machine):
        return 0
    wave = machine.processors * alone.footprint.resident(machine)
    if alone.programs <= wave or fits(alone, machine.tiers[1]):
        return 0
    return sum(from_memory(alone, machine, wave).values())
