"""The tuning of one kernel: candidates are compiled, checked and only then timed, in a budget.

The model's choice comes first: without its time, no other time says whether tuning gains anything.
Its compilation starts before the others are even ranked, it has the whole budget for that, and it
is timed before the others are. A budget limits the time; candidates beyond it are counted, and a
run without any time stores nothing.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import count
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
"""Which part of the budget may have passed when all but the model's choice is checked."""

Choose = Callable[[Asked], Sequence[Choice]]
Save = Callable[[Plan, Path], Path]
Tell = Callable[[str], None]
Written = Callable[[Choice], Path]
"""Writes the plan with a choice into a file. Raises Unsaved."""


class Unsaved(Exception):
    """A plan that another process cannot have, since it cannot be saved, and why."""


@dataclass(frozen=True)
class Checked:
    """A choice, the file of its plan, and why the plan must not be used: "" if it is right."""

    choice: Choice
    path: Path
    reason: str


@dataclass(frozen=True)
class Measuring:
    """The way kernels are measured: ``choose`` returns candidates beside the model's choice.

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
        with tempfile.TemporaryDirectory(prefix="blockbuster-") as folder:
            written = partial(_written, family, plan, file, _files(Path(folder)), save)
            checked = self._checked(asked, written, began, name)
            right = [one.path for one in checked if not one.reason]
            self.tell(f"{name}: timing {len(right)} schedules")
            times = dict(zip(right, self.bench.time(right, began + self.limit), strict=True))
        found = [times.get(one.path, one.reason) for one in checked]
        took = round(self.clock() - began, 2)
        configs = _configs([one.choice for one in checked], found)
        return Entry(key, shown(name), configs, took, found.count(LATE))

    def _checked(self, asked: Asked, written: Written, began: float, name: str) -> list[Checked]:
        """The model's choice and the others, checked; the check of the former begins first.

        Nothing is timed before all checks have ended: they run kernels on the same GPU.
        """
        usual, check = asked.considered.best, self.bench.check
        with ThreadPoolExecutor(self.bench.count) as threads:
            path = written(usual)
            begun = [(usual, path, threads.submit(check, path, began + self.limit))]
            self.tell(f"{name}: ranking schedules")
            others = self.choose(asked)
            self.tell(f"{name}: checking {1 + len(others)} schedules")
            for choice in others:
                path, until = written(choice), began + CHECKED * self.limit
                begun.append((choice, path, threads.submit(check, path, until)))
            return [Checked(choice, path, said.result()) for choice, path, said in begun]


def _files(folder: Path) -> Iterator[Path]:
    """Names of files in a folder, each once."""
    return (folder / f"{at}.json" for at in count())


def _written(
    family: Family, plan: Plan, file: File, files: Iterator[Path], save: Save, choice: Choice
) -> Path:
    try:
        return save(family.with_choice(plan, file, choice), next(files))
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
