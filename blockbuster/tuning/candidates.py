"""The candidates of a tuning run: schedules near the default ones, ranked by the model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor
from itertools import islice

from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.machines import Machine
from blockbuster.selection.asked import Asked, rescheduled
from blockbuster.selection.candidate import Choice
from blockbuster.selection.grouped_grid import grouped
from blockbuster.selection.ranking import BEST, KEPT, rank
from blockbuster.selection.variations import variations

FORMS = 3
"""Snapshots whose schedules are varied: the model's choice, and the next best."""

WORST = 2.0
"""How many times the price of the model's choice another snapshot may have to be varied."""

Nearby = Callable[[Scheduled], Iterable[Scheduled]]


def nearby(scheduled: Scheduled) -> Iterator[Scheduled]:
    """Schedules of the same program for the same sizes, the cheapest by the closed form first."""
    return (grouped(one.scheduled) for one in variations(scheduled))


def candidates(
    asked: Asked, executor: Executor | None, *, machine: Machine, near: Nearby = nearby
) -> list[Choice]:
    """The model's choice, and at most ``BEST`` others, those that it ranks first in front.

    ``executor`` compiles; ``near`` gives the schedules near one. No choice that is refused. Raises
    EmitError if none of them compiles, or none in time.
    """
    default = asked.considered.best
    found: dict[Scheduled, Choice] = {}
    near_best = (one for one in asked.choices() if one.price <= WORST * default.price)
    for choice in islice(near_best, FORMS):
        found |= dict(_near(choice, near, asked))
    if len(found) == 1:
        return [default]
    ranking = rank([*found], machine, keep=KEPT, best=BEST, executor=executor)
    ranked = [found[place.scheduled] for place in ranking.best if place.binaries]
    others = [choice for choice in ranked if choice.key != default.key]
    return [default, *others]


def _near(choice: Choice, near: Nearby, asked: Asked) -> Iterator[tuple[Scheduled, Choice]]:
    assert choice.scheduled is not None, "a choice for a GPU"
    for scheduled in dict.fromkeys((choice.scheduled, *near(choice.scheduled))):
        made = choice if scheduled is choice.scheduled else rescheduled(choice, scheduled)
        if made.key not in asked.refused and (made.kernels == 1 or not asked.one_kernel):
            yield scheduled, made
