"""Warps, stages, groups and overlaps of a schedule: the moves behind its arrangement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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


@dataclass(frozen=True)
class KernelSetting:
    """``warps`` of a kernel's programs; ``stages`` of its loops of dots, 0 for none."""

    warps: int
    stages: int = PRIORS.usual_stages


def with_usual_settings(scheduled: Scheduled, warps: int | None = None) -> Scheduled:
    """``scheduled``, which has none of them, complete. ``warps``: instead of the usual ones."""
    counts = (warps or usual_warps(scheduled, nest) for nest in scheduled.draft.nests)
    return overlapped(grouped(with_settings(scheduled, [*map(KernelSetting, counts)])))


def with_settings(scheduled: Scheduled, settings: Sequence[KernelSetting]) -> Scheduled:
    """``scheduled``, which has neither, with the warps and stages of its kernels."""
    counts = [setting.warps for setting in settings]
    if len(set(counts)) == 1:
        scheduled = WARPS.apply(scheduled, EVERYWHERE, count=counts[0])
    else:
        for number, count in enumerate(counts, start=1):
            scheduled = WARPS.apply(scheduled, Site(number), count=count)
    return staged(scheduled, [setting.stages for setting in settings])


def staged(scheduled: Scheduled, stages: Sequence[int]) -> Scheduled:
    """``scheduled`` with the loads of dots running ahead, wherever they can, in so many ``stages``
    of each kernel.
    """
    for site in list(STAGE.sites(scheduled)):
        loop, count = loop_at(scheduled.draft, site), stages[site.nest - 1]
        assert loop is not None
        tiling = tiling_of(scheduled.draft, scheduled.draft.nests[site.nest - 1])
        if count and any(is_matrix_dot(stmt, tiling) for stmt in loop.body):
            scheduled = STAGE.apply(scheduled, site, stages=count)
    return scheduled
