"""What a tuning run works with: processes that run plans once, and time them.

Two callables, so that a test, or a cluster, can take the place of each.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from blockbuster.tuning import process
from blockbuster.tuning.forks import (
    LATE,
    LOADED,
    Gone,
    Lost,
    called,
    called_for_each,
    cores,
    ready,
)

PATIENCE = 5.0
"""Seconds that a process may take longer than its budget: what it has not said by then is lost."""

Times = list[tuple[float, ...] | str]
"""For each plan its times in microseconds, round by round, or why there are none."""


@dataclass(frozen=True)
class Bench:
    """``run``: each plan compiled and run once, and why it cannot run, or "". ``time``: the times
    of plans whose results are right. Both take files of plans and when to stop; ``time`` between
    them when to stop comparing. ``begin`` is called before all that.
    """

    run: Callable[[Sequence[Path], float], list[str]]
    time: Callable[[Sequence[Path], float, float], Times]
    begin: Callable[[], None] = lambda: None


def gpu_bench(device: int) -> Bench:
    """A bench for a GPU of this host, by its number."""
    return Bench(
        partial(run_alone, device=device),
        partial(timed, device=device),
        partial(ready, LOADED),  # loading Triton takes no part of a kernel's budget
    )


def run_alone(paths: Sequence[Path], until: float, *, device: int) -> list[str]:
    """Each plan compiled and run in a process of its own: a fault there ends nothing else."""
    run = partial(process.run_once, device=device)
    names = [str(path) for path in paths]
    said = called_for_each(LOADED, until, run, names, count=cores())
    return [one.reason if isinstance(one, Gone) else one for one in said]


def timed(paths: Sequence[Path], compared: float, until: float, *, device: int) -> Times:
    """All plans compared with what is right, then timed in rounds, in one process.

    None is compared after ``compared``. What was timed before the process was lost counts.
    """
    if not paths:
        return []
    with tempfile.TemporaryDirectory(prefix="blockbuster-") as name:
        report = Path(name, "times")
        given = ([str(path) for path in paths], device, compared, until, str(report))
        lost = LATE
        try:
            called(LOADED, max(until, time.monotonic()) + PATIENCE, process.time_rounds, *given)
        except Lost as reason:
            lost = str(reason)
        found = _read(report)
    said = [[entry for number, entry in found if number == at] for at in range(len(paths))]
    return [_times(entries) or lost for entries in said]


def _times(entries: Sequence[float | str]) -> tuple[float, ...] | str:
    """Times, or the reason why there are none; nothing where nothing was said."""
    reason = next((entry for entry in entries if isinstance(entry, str)), None)
    return reason or tuple(entry for entry in entries if not isinstance(entry, str))


def _read(report: Path) -> list[tuple[int, float | str]]:
    """The lines of a report: a plan's number, and a time or a reason. The last may be cut off."""
    found: list[tuple[int, float | str]] = []
    lines = report.read_text(encoding="utf-8").split("\n") if report.exists() else []
    for line in lines:
        with suppress(ValueError):
            at, entry = json.loads(line)
            found.append((int(at), entry if isinstance(entry, str) else float(entry)))
    return found
