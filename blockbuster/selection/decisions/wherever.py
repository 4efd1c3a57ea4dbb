"""A move at every place where it pays."""

from __future__ import annotations

from collections.abc import Callable

from blockbuster.emit.schedule.base import Move
from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.emit.schedule.site import Site

Pays = Callable[[Scheduled, Site], bool]
"""Whether a move is worth it at a place where it applies."""


def wherever(move: Move, scheduled: Scheduled, pays: Pays = lambda *_: True) -> Scheduled:
    """``scheduled`` after ``move`` at each place where that ``pays``, the first one first.

    The move may change the places of others, so the next one is looked for anew each time.
    """
    while True:
        site = next((site for site in move.sites(scheduled) if pays(scheduled, site)), None)
        if site is None:
            return scheduled
        scheduled = move.apply(scheduled, site)
