"""Warps, stages, groups and overlaps of an untuned schedule: the moves behind its arrangement."""

from __future__ import annotations

from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.emit.schedule.site import EVERYWHERE, Site, loop_at
from blockbuster.emit.schedule.stage import Stage
from blockbuster.emit.schedule.warps import Warps
from blockbuster.emit.tile.tiling import tiling_of
from blockbuster.emit.tile.uses import is_matrix_dot
from blockbuster.selection.decisions.grouped_grid import grouped
from blockbuster.selection.decisions.overlapping import overlapped
from blockbuster.selection.decisions.usual_warps import usual_warps
from blockbuster.selection.priors import PRIORS

STAGE, WARPS = Stage(), Warps()


def with_usual_settings(scheduled: Scheduled, warps: int | None = None) -> Scheduled:
    """``scheduled``, which has none of them, complete. ``warps``: instead of the usual ones."""
    return overlapped(grouped(staged(with_warps(scheduled, warps))))


def with_warps(scheduled: Scheduled, warps: int | None) -> Scheduled:
    """``scheduled`` with so many warps in all kernels, or as many as each usually has."""
    usual = [warps or usual_warps(scheduled, nest) for nest in scheduled.draft.nests]
    if len(set(usual)) == 1:
        return WARPS.apply(scheduled, EVERYWHERE, count=usual[0])
    for number, count in enumerate(usual, start=1):
        scheduled = WARPS.apply(scheduled, Site(number), count=count)
    return scheduled


def staged(scheduled: Scheduled, stages: int = PRIORS.usual_stages) -> Scheduled:
    """``scheduled`` with the loads of dots running ahead, wherever they can."""
    for site in list(STAGE.sites(scheduled)):
        loop = loop_at(scheduled.draft, site)
        assert loop is not None
        tiling = tiling_of(scheduled.draft, scheduled.draft.nests[site.nest - 1])
        if any(is_matrix_dot(stmt, tiling) for stmt in loop.body):
            scheduled = STAGE.apply(scheduled, site, stages=stages)
    return scheduled
