"""Ranking of schedules before any is measured, in two stages.

A closed form ranks all schedules, in milliseconds each. The best are compiled, which needs no GPU,
and ranked again by both estimates: the first, and that from facts about their binaries. A kernel
that spills registers, or whose matrix instructions run one by one in a loop, is many times slower
than any model says, so it ranks last.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, Executor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bench.costs.binary import Binary, binary_of
from bench.costs.binary_model import time_of_binary
from blockbuster.costs.cost import cost
from blockbuster.costs.report import Report
from blockbuster.costs.work import Work, work
from blockbuster.emit.print.triton.text import Heading, triton_file
from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.emit.target.load import load_module
from blockbuster.emit.target.targets import target_of
from blockbuster.errors import EmitError, a_kind, message
from blockbuster.ir.meaning import Reference
from blockbuster.machines import Machine, machine

KEPT, BEST = 32, 8
CLEAN, SLOW, REFUSED = range(3)
"""Classes of compiled schedules, better ones first."""


@dataclass(frozen=True)
class Place:
    """A schedule's place in a ranking.

    ``first``: microseconds by the closed form, infinite if no program fits. ``second``: the
    prediction of the binaries' model, None if they are not modelled. ``reason``: why it has this
    rank.
    """

    scheduled: Scheduled
    first: float
    second: Report | None
    binaries: tuple[Binary, ...]
    reason: str

    @property
    def time_us(self) -> float:
        """Microseconds by which it is ranked."""
        return both(self.first, self.second.time_us) if self.second else self.first

    def __str__(self) -> str:
        schedule = "; ".join(self.scheduled.schedule.split("\n")).strip("; ")
        return f"{schedule}: {self.reason}"


@dataclass(frozen=True)
class Ranking:
    """Schedules, best first: ``best`` are worth measuring, ``others`` were compiled, too.

    ``ranked``: how many the closed form ranked before; ``dropped``: those that it could not.
    """

    machine: str
    ranked: int
    best: tuple[Place, ...]
    others: tuple[Place, ...]
    dropped: tuple[Place, ...] = ()

    def __str__(self) -> str:
        compiled = len(self.best) + len(self.others)
        lines = [f"{self.ranked} schedules for {self.machine}, {compiled} compiled; the best:"]
        return "\n".join((*lines, *(f"{n:3} {place}" for n, place in enumerate(self.best, 1))))


def rank(
    schedules: Sequence[Scheduled],
    on: str | Path | Machine = "h200",
    *,
    launch: str = "graph",
    warm: bool = False,
    keep: int = KEPT,
    best: int = BEST,
    executor: Executor | None = None,
) -> Ranking:
    """Rank schedules of one program: ``keep`` of them are compiled, ``best`` of these returned.

    They are compiled by ``executor`` (any of concurrent.futures; None: here, one by one).
    ``launch`` and ``warm``: as for ``Kernel.cost``. One that does not fit its sizes is dropped.
    Raises TypeError for anything but a schedule; ValueError if there is none, or none that fits its
    sizes, or for an unknown machine; EmitError if none of the kept schedules compiles and can run,
    or a worker died.
    """
    _check_schedules(schedules)
    if not 1 <= best <= keep:
        raise ValueError(f"the best {best} of {keep} are asked for, expected 1 <= best <= keep")
    device = machine(on)
    works, dropped = _works(schedules)
    times = {at: _first(each, device, launch, warm) for at, each in works.items()}
    kept = sorted(times, key=lambda at: times[at])[:keep]
    made = _compiled([schedules[at] for at in kept], executor)
    found = []
    for at, binaries in zip(kept, made, strict=True):
        say = partial(_placed, schedules[at], times[at])
        found.append(say(works[at], binaries, device, launch=launch, warm=warm))
    if all(kind == REFUSED for kind, _ in found):
        raise _none_runs([place for _, place in found])
    places = [place for _, place in sorted(found, key=_order)]
    return Ranking(device.name, len(works), tuple(places[:best]), tuple(places[best:]), dropped)


def _check_schedules(schedules: Sequence[Scheduled]) -> None:
    if not schedules:
        raise ValueError(message("there is no schedule to rank", hint="give at least one"))
    for at, each in enumerate(schedules):
        if not isinstance(each, Scheduled):
            what = f"schedule {at} is {a_kind(each)}, expected a Scheduled"
            raise TypeError(message(what, hint="of a kernel, give kernel.derivation.final"))


def _works(
    schedules: Sequence[Scheduled],
) -> tuple[dict[int, tuple[Work, ...]], tuple[Place, ...]]:
    """What each schedule's kernels do, by its number; what does not fit its sizes, and why."""
    found: dict[int, tuple[Work, ...]] = {}
    dropped = []
    for at, scheduled in enumerate(schedules):
        try:
            found[at] = work(scheduled)
        except ValueError as error:
            dropped.append(Place(scheduled, float("inf"), None, (), str(error)))
    if not found:
        what = f"none of {len(schedules)} schedules fits its sizes: {dropped[0].reason}"
        raise ValueError(message(what))
    return found, tuple(dropped)


def _none_runs(places: Sequence[Place]) -> EmitError:
    does = "can run" if any(place.binaries for place in places) else "compiles"
    what = f"none of {len(places)} schedules {does}: {places[0].reason}"
    return EmitError(message(what, hint="choose smaller blocks, or fewer stages"))


def _order(found: tuple[int, Place]) -> tuple[int, float, float]:
    """Clean ones by their time; others by how much they spill, then by the closed form."""
    kind, place = found
    if kind == CLEAN:
        return kind, place.time_us, place.first
    return kind, float(sum(binary.spilled for binary in place.binaries)), place.first


def both(first: float, second: float) -> float:
    """The geometric mean of the estimates of both stages, in which that of the binaries counts
    twice: they err by factors of their own, and binaries by smaller ones.

    On an H200 its ranks of the schedules of 18 programs correlate with times by 0.92 in the mean,
    those of the closed form alone by 0.88, of the binaries alone by 0.91. A closed form that says
    that no program fits is not asked.
    """
    return math.cbrt(first * second**2) if math.isfinite(first) else second


def _first(works: tuple[Work, ...], device: Machine, launch: str, warm: bool) -> float:
    """Microseconds by the closed form; infinite where it says that no program fits."""
    if any(each.footprint.misfit(device) for each in works):
        return float("inf")
    return cost(works, device, launch=launch, warm=warm).time_us


def _placed(
    scheduled: Scheduled,
    first: float,
    works: tuple[Work, ...],
    binaries: tuple[Binary, ...] | str,
    device: Machine,
    *,
    launch: str,
    warm: bool,
) -> tuple[int, Place]:
    """The class of a compiled schedule, and its place with the reason for it."""
    if isinstance(binaries, str):
        return REFUSED, Place(scheduled, first, None, (), f"it does not compile: {binaries}")
    if slow := "; ".join(why_slow(binary) for binary in binaries if why_slow(binary)):
        return SLOW, Place(scheduled, first, None, binaries, f"{slow}: not modelled")
    timers = [partial(time_of_binary, binary) for binary in binaries]
    try:
        report = cost(works, device, launch=launch, warm=warm, timers=timers)
    except EmitError as error:
        return REFUSED, Place(scheduled, first, None, binaries, str(error))
    closed = f"{first:.1f} us" if math.isfinite(first) else "does not fit"
    said = f"{report.time_us:.1f} us by its binary, limited by {report.critical}"
    return CLEAN, Place(scheduled, first, report, binaries, f"{said}; closed form: {closed}")


def why_slow(binary: Binary) -> str:
    """Why a kernel is slower than any model says, or ""."""
    if binary.spilled:
        return f"{binary.function} spills {binary.spilled:,} bytes of registers"
    if binary.serialized:
        return f"{binary.function} runs matrix instructions one by one in a loop"
    return ""


# compiling ------------------------------------------------------------------------


def _compiled(
    schedules: Sequence[Scheduled], executor: Executor | None
) -> Iterator[tuple[Binary, ...] | str]:
    """The binaries of each schedule, or why it does not compile. EmitError if a worker dies."""
    texts = map(text_of, schedules)
    targets = [scheduled.target.name for scheduled in schedules]
    try:
        yield from (executor.map if executor else map)(compiled, texts, targets)
    except BrokenExecutor as error:
        what = f"a worker died while it compiled schedules: {error}"
        raise EmitError(
            message(what, hint="give an executor with fewer workers, or none")
        ) from error


def text_of(scheduled: Scheduled) -> str:
    """The emitted file of a schedule, without a listing and a reference."""
    heading = Heading("", scheduled.target.name, Reference(""), (), scheduled.schedule)
    return triton_file(scheduled.program, scheduled.sizes, heading).text


def compiled(source: str, target: str) -> tuple[Binary, ...] | str:
    """The binaries of an emitted file's kernels, or why Triton refuses one; runs in any process."""
    if os.environ.get("TRITON_INTERPRET", "0") == "1":
        raise EmitError("TRITON_INTERPRET=1 is set: Triton compiles nothing in this process")
    entries: Sequence[Mapping[str, object]] = load_module(source).KERNELS
    try:
        return tuple(binary_of(entry, target_of(target)) for entry in entries)
    except EmitError as error:
        return str(error)
