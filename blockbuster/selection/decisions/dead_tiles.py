"""Which fully masked tiles are filled instead of computed: those where the device stays busy."""

from __future__ import annotations

from blockbuster.emit.schedule.fill import Fill
from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.emit.schedule.site import Site, loop_at
from blockbuster.emit.tile.extents import extents_of
from blockbuster.selection.priors import PRIORS

FILL = Fill()


def filled(scheduled: Scheduled) -> Scheduled:
    """``scheduled`` with the loops filled that leave enough programs."""
    while True:
        site = next((s for s in FILL.sites(scheduled) if not does_not_pay(scheduled, s)), None)
        if site is None:
            return scheduled
        scheduled = FILL.apply(scheduled, site)


def does_not_pay(scheduled: Scheduled, site: Site) -> str:
    """Why the loop at ``site`` computes all of its tiles although a mask empties some, or ""."""
    loop = loop_at(scheduled.draft, site)
    if loop is None or not loop.parallel:
        return ""
    after = FILL.apply(scheduled, site)
    extents = extents_of(after.program, after.sizes)[site.nest - 1]
    programs = extents.tiles(extents.grid)
    if programs < PRIORS.filled_programs_per_processor * scheduled.target.processors:
        return f"without the loop over {loop.dim} on the grid there are {programs} programs"
    return ""
