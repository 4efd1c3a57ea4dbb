"""Which fully masked tiles are filled instead of computed: those where the device stays busy."""

from __future__ import annotations

from blockbuster.emit.schedule.fill import Fill
from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.emit.schedule.site import Site, loop_at
from blockbuster.emit.tile.extents import extents_of
from blockbuster.selection.decisions.wherever import wherever
from blockbuster.selection.priors import PRIORS

FILL = Fill()


def filled(scheduled: Scheduled) -> Scheduled:
    """``scheduled`` with the loops filled that leave enough programs."""
    return wherever(FILL, scheduled, _pays)


def _pays(scheduled: Scheduled, site: Site) -> bool:
    """True if the loop at ``site`` is not on the grid, or there are enough programs without it."""
    loop = loop_at(scheduled.draft, site)
    if loop is None or not loop.parallel:
        return True
    after = FILL.apply(scheduled, site)
    extents = extents_of(after.program, after.sizes)[site.nest - 1]
    enough = PRIORS.filled_programs_per_processor * scheduled.target.processors
    return extents.tiles(extents.grid) >= enough
