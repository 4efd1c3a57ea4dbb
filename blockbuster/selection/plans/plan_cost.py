"""The cost of a plan on a machine: the sum over the kernels of its files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from blockbuster.costs import Report, cost, work
from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.errors import message
from blockbuster.machines import Machine
from blockbuster.selection.considered import Considered


def plan_cost(
    files: Sequence[Considered | None],
    machine: str | Path | Machine,
    *,
    launch: str,
    warm: bool,
) -> Report:
    """The closed form of a plan's files.

    Raises ValueError for what ``Kernel.cost`` refuses, and for files of a loaded plan.
    """
    works = [one for considered in files for one in work(_scheduled(considered))]
    return cost(works, machine, launch=launch, warm=warm)


def _scheduled(considered: Considered | None) -> Scheduled:
    if considered is None:
        raise ValueError(
            message(
                "a plan that was loaded has forgotten the schedules of its kernels",
                hint="compile the program again to ask for its cost",
            )
        )
    assert considered.best.scheduled is not None, "a plan for a GPU"
    return considered.best.scheduled
