"""The bench of a tuning run: processes that check plans and time them on a GPU.

It is two callables, so that a test, or a cluster, can replace each.
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
from blockbuster.tuning.entry import LATE
from blockbuster.tuning.workers import (
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
    """``check``: why a plan must not be used, or ""; ``time``: the times of plans. Both take files
    of plans and when to stop. ``begin`` is called before them.
    """

    check: Callable[[Sequence[Path], float], list[str]]
    time: Callable[[Sequence[Path], float], Times]
    begin: Callable[[], None] = lambda: None


def gpu_bench(device: int) -> Bench:
    """A bench for a GPU of this host, by its number."""
    # loading Triton takes no part of a kernel's budget
    begin = partial(ready, LOADED, cores(), partial(process.warm, device))
    return Bench(partial(checked, device=device), partial(timed, device=device), begin)


def checked(paths: Sequence[Path], until: float, *, device: int) -> list[str]:
    """Each plan checked, side by side; one that faults ends its process."""
    check = partial(process.check, device=device)
    names = [str(path) for path in paths]
    said = called_for_each(LOADED, until, check, names, count=cores())
    return [one.reason if isinstance(one, Gone) else one for one in said]


def timed(paths: Sequence[Path], until: float, *, device: int) -> Times:
    """All plans timed in one process, in rounds; times from before a loss of the process count."""
    if not paths:
        return []
    with tempfile.TemporaryDirectory(prefix="blockbuster-") as name:
        report = Path(name, "times")
        given = ([str(path) for path in paths], device, until, str(report))
        reason = LATE
        try:
            called(LOADED, max(until, time.monotonic()) + PATIENCE, process.time_rounds, *given)
        except Lost as lost:
            reason = str(lost)
        found = _read(report)
    rounds = {at: tuple(us for number, us in found if number == at) for at in range(len(paths))}
    return [rounds[at] or reason for at in range(len(paths))]


def _read(report: Path) -> list[tuple[int, float]]:
    """The lines of a report; the last one may be cut off."""
    found: list[tuple[int, float]] = []
    lines = report.read_text(encoding="utf-8").split("\n") if report.exists() else []
    for line in lines:
        with suppress(ValueError):
            at, us = json.loads(line)
            found.append((int(at), float(us)))
    return found
