"""Which exponentials are made in base 2: all whose results do not show the rounding of exp."""

from __future__ import annotations

from blockbuster.emit.closing.accurate_functions import not_shown
from blockbuster.emit.schedule.factor import Factor
from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.emit.tile.typed import is_accurate

FACTOR = Factor()


def in_base_two(scheduled: Scheduled) -> Scheduled:
    """``scheduled`` with its exponentials in base 2, wherever exp need not be accurate."""
    exact = is_accurate(scheduled.draft)
    for site in list(FACTOR.sites(scheduled)):
        if not site.nest:
            continue
        draft = scheduled.draft
        if not exact or not_shown("exp", draft, draft.nests[site.nest - 1]):
            scheduled = FACTOR.apply(scheduled, site)
    return scheduled
