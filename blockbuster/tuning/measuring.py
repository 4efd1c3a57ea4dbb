"""The tuning of one kernel: candidates are compiled, checked and only then timed, in a budget.

The model's choice is always among the candidates, so that a result states the gain of tuning. A
budget limits the time; candidates beyond it are counted, and a run without any time stores nothing.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from blockbuster.errors import shown
from blockbuster.selection.candidates.candidate import Choice
from blockbuster.selection.plans.asked import Asked
from blockbuster.selection.plans.family import Family
from blockbuster.selection.plans.plan import File, Plan
from blockbuster.tuning.bench import Bench, Times
from blockbuster.tuning.entry import LATE, LONGEST, Config, Entry, Key
from blockbuster.tuning.known import config_of

LIMIT = 10.0
"""Seconds that tuning a kernel takes, about."""

CHECKED = 0.75
"""Which part of the budget may have passed when all is checked."""

Choose = Callable[[Asked], Sequence[Choice]]
Save = Callable[[Plan, Path], Path]
Tell = Callable[[str], None]


class Unsaved(Exception):
    """A plan that another process cannot have, since it cannot be saved, and why."""


@dataclass(frozen=True)
class Measuring:
    """The way kernels are measured: ``choose`` returns candidates, the model's choice in front.

    ``limit``: seconds for a kernel; ``tell`` is called with progress messages, ``clock`` counts
    seconds.
    """

    bench: Bench
    choose: Choose
    limit: float = LIMIT
    tell: Tell = lambda _: None
    clock: Callable[[], float] = time.monotonic

    def entry(
        self, family: Family, plan: Plan, file: File, asked: Asked, *, key: Key, save: Save
    ) -> Entry:
        """The measurements for a file of a plan. ``save`` writes a plan into a file.

        Raises Unsaved for a plan that cannot be saved.
        """
        began = self.clock()
        name = f"{plan.name}: {', '.join(file.writes)}"
        self.tell(f"{name}: ranking schedules")
        choices = self.choose(asked)
        with tempfile.TemporaryDirectory(prefix="blockbuster-") as folder:
            plans = [family.with_choice(plan, file, choice) for choice in choices]
            paths = _saved(plans, Path(folder), save)
            self.tell(f"{name}: checking {len(paths)} schedules")
            wrong = self.bench.check(paths, began + CHECKED * self.limit)
            right = [path for path, reason in zip(paths, wrong, strict=True) if not reason]
            self.tell(f"{name}: timing {len(right)} schedules")
            times = dict(zip(right, self.bench.time(right, began + self.limit), strict=True))
        found = [times.get(path, reason) for path, reason in zip(paths, wrong, strict=True)]
        took = round(self.clock() - began, 2)
        return Entry(key, shown(name), _configs(choices, found), took, found.count(LATE))


def _saved(plans: Sequence[Plan], folder: Path, save: Save) -> list[Path]:
    try:
        return [save(plan, folder / f"{at}.json") for at, plan in enumerate(plans)]
    except ValueError as error:
        raise Unsaved(str(error)) from error


def _configs(choices: Sequence[Choice], found: Times) -> tuple[Config, ...]:
    configs = []
    for at, (choice, result) in enumerate(zip(choices, found, strict=True)):
        program, schedule = config_of(choice)
        if isinstance(result, str):
            reason = shown(result, LONGEST)
            configs.append(Config(program, schedule, None, reason, default=not at))
        else:
            us = round(statistics.median(result), 3)
            configs.append(Config(program, schedule, us, "", result, default=not at))
    return tuple(configs)
