"""The candidates of a tuning run: schedules near the default ones, ranked by the model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from math import inf

from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.selection.candidates.candidate import Choice
from blockbuster.selection.plans.asked import Asked, rescheduled
from blockbuster.selection.search import beam, microseconds

BEST = 8
"""Schedules that are measured beside the model's choice."""

FORMS = 3
"""Snapshots whose schedules are varied: the model's choice, and the next best."""

WORST = 2.0
"""How many times the price of the model's choice another snapshot may have to be varied."""

BUDGET = 200
"""The most schedules that are priced near the choice of each snapshot."""

Nearby = Callable[[Scheduled], Iterable[Scheduled]]


def nearby(scheduled: Scheduled) -> Iterator[Scheduled]:
    """Schedules in the space of the same program for the same sizes, the cheapest first.

    The search begins at the schedule as it was chosen, with descriptors, fixed numbers of programs
    and groups, so that what is measured has them, too.
    """
    found = beam([scheduled], microseconds, budget=BUDGET)
    return (one.scheduled for one in found if one.microseconds < inf)


def candidates(asked: Asked, *, near: Nearby = nearby) -> list[Choice]:
    """At most ``BEST`` schedules beside the model's choice, the fastest by the closed form first.

    ``near`` returns the schedules near one. Refused choices are left out. The binaries are not
    ranked first: in all workloads that judge it, the best schedule was among eight by the closed
    form (bench/results/2026-11-22-h200-costs), and every schedule compiled here is also timed.
    """
    default = asked.considered.best
    found: dict[Scheduled, Choice] = {}
    near_best = (one for one in asked.choices() if one.price <= WORST * default.price)
    for choice in islice(near_best, FORMS):
        found |= dict(_near(choice, near, asked))
    times = {scheduled: microseconds(scheduled) for scheduled in found}
    ranked = [found[one] for one in sorted(times, key=lambda one: times[one]) if times[one] < inf]
    return [choice for choice in ranked if choice.key != default.key][:BEST]


def _near(choice: Choice, near: Nearby, asked: Asked) -> Iterator[tuple[Scheduled, Choice]]:
    assert choice.scheduled is not None, "a choice for a GPU"
    for scheduled in dict.fromkeys((choice.scheduled, *near(choice.scheduled))):
        made = choice if scheduled is choice.scheduled else rescheduled(choice, scheduled)
        if made.key not in asked.refused and (made.kernels == 1 or not asked.one_kernel):
            yield scheduled, made
