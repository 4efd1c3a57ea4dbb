"""The bench of a tuning run: processes that check plans and time them on a GPU.

Its parts are callables, so that a test, or a cluster, can replace each.
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
from blockbuster.tuning.workers import LOADED, Lost, called, cores, ready

PATIENCE = 5.0
"""Seconds that a process may take longer than its budget: what it has not said by then is lost."""

Times = list[tuple[float, ...] | str]
"""For each plan its times in microseconds, round by round, or why there are none."""


@dataclass(frozen=True)
class Bench:
    """``check``: why a plan must not be used, or ""; ``time``: the times of plans, the first one
    first. Both take files of plans and when to stop. ``begin`` is called before them. ``count``:
    how many checks run side by side.
    """

    check: Callable[[Path, float], str]
    time: Callable[[Sequence[Path], float], Times]
    begin: Callable[[], None] = lambda: None
    count: int = 1


def gpu_bench(device: int) -> Bench:
    """A bench for a GPU of this host, by its number."""
    # loading Triton takes no part of a kernel's budget
    begin = partial(ready, LOADED, cores(), partial(process.warm, device))
    return Bench(partial(checked, device=device), partial(timed, device=device), begin, cores())


def checked(path: Path, until: float, *, device: int) -> str:
    """Why a plan must not be used, or "": one that faults ends its process."""
    try:
        return called(LOADED, until, process.check, str(path), device)
    except Lost as lost:
        return LATE if time.monotonic() >= until else str(lost)


def timed(paths: Sequence[Path], until: float, *, device: int) -> Times:
    """All plans timed in one process, in rounds; times from before a loss of the process count.

    Those of the first plan alone count only if it was lost before the rounds of all.
    """
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
    rounds: dict[int, tuple[float, ...]] = {}
    for at, us in found:
        rounds[at] = (*rounds.get(at, ()), us)
    first = rounds.get(0) or rounds.get(process.ALONE) or reason
    return [first, *(rounds.get(at, reason) for at in range(1, len(paths)))]


def _read(report: Path) -> list[tuple[int, float]]:
    """The lines of a report; the last one may be cut off."""
    found: list[tuple[int, float]] = []
    lines = report.read_text(encoding="utf-8").split("\n") if report.exists() else []
    for line in lines:
        with suppress(ValueError):
            at, us = json.loads(line)
            found.append((int(at), float(us)))
    return found
