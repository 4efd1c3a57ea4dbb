"""One schedule near the default with its cost, and which of several is taken."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from blockbuster.costs import Work
from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.selection.cost import Cost
from blockbuster.selection.decisions.usual_settings import KernelSetting
from blockbuster.selection.nearby.arrangements import Arrangement
from blockbuster.selection.priors import PRIORS


@dataclass(frozen=True)
class Variation:
    """A schedule with its cost, and what it was made from. ``unusual``: kernels whose number of
    warps is not the usual one."""

    scheduled: Scheduled
    cost: Cost
    arrangement: Arrangement
    settings: tuple[KernelSetting, ...]
    unusual: int = 0

    @property
    def microseconds(self) -> float:
        """The cost in microseconds."""
        return self.cost.microseconds


def preferred(found: Sequence[Variation]) -> list[Variation]:
    """Variations, the cheapest of which is the first, in the order in which they are taken.

    First those that cost about as little: of them, those whose warps multiply together, four by
    four, then the one that moves least between memory and processors, in tenths of the least, then
    the one with the more usual numbers of warps, then the one whose dots read least, in tenths too,
    if it has as many programs as the cheapest, then the cheapest. Of two that cost the same, the
    one whose dots read less: 128 x 256 results rather than 256 x 128. By 64 keys a step instead of
    128, causal attention of depth 64 took an H200 111 microseconds for 4096 positions instead of
    101; by the closed form 126.1 and 126.7.
    """
    limit = _limit(found[0].cost) if found else 0.0
    near = [one for one in found if one.microseconds <= limit]
    return [*sorted(near, key=partial(_preference, near)), *found[len(near) :]]


def _limit(least: Cost) -> float:
    """The most microseconds that count as equal to those of ``least``."""
    dots = any(phase.dots for work in least.works for phase in work.phases)
    began = 0.0 if dots else least.launching
    in_turn = any(_are_two_in_turn(work, least) for work in least.works)
    near = 1.0 if in_turn else PRIORS.near_schedules_factor
    return began + near * (least.microseconds - began)


def _are_two_in_turn(work: Work, cost: Cost) -> bool:
    return work.in_turn and work.footprint.resident(cost.machine) == PRIORS.most_in_turn


def _preference(
    near: Sequence[Variation], one: Variation
) -> tuple[bool, int, int, int, float, int, int]:
    """What the order of ``near`` schedules, the cheapest first, goes by."""
    least = max(min(other.cost.moved for other in near), 1)
    fewest = max(min(map(_read, near)), 1)
    like = one if _programs(one) == _programs(near[0]) else max(one, near[0], key=_read)
    stages = sum(PRIORS.stages_tried.index(setting.stages) for setting in one.settings)
    moved, tenths = 10 * one.cost.moved // least, 10 * _read(like) // fewest
    return apart(one), moved, one.unusual, tenths, one.microseconds, _read(one), stages


def _programs(one: Variation) -> list[int]:
    """How many programs each kernel has."""
    return [work.programs for work in one.cost.works]


def _read(one: Variation) -> int:
    """Bytes that dots read from shared memory."""
    return sum(phase.fetched for work in one.cost.works for phase in work.phases)


def apart(one: Variation) -> bool:
    """True if warps multiply alone that could do so together, with more rows."""
    return any(phase.apart for work in one.cost.works for phase in work.phases)
