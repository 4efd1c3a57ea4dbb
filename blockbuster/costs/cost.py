"""The closed form of kernels that run one after the other: ``Kernel.cost`` and ``Plan.cost``."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Protocol

from blockbuster.costs.cached import room_of
from blockbuster.costs.launches import LAUNCHES, launching
from blockbuster.costs.report import Report, limiting
from blockbuster.costs.tiered import NestTime, time_of
from blockbuster.costs.work import Work, summed
from blockbuster.emit.tile.each_nest import KEPT, Same
from blockbuster.errors import message
from blockbuster.machines import Machine, machine
from blockbuster.machines.machine import Tier


class Timer(Protocol):
    """A function that predicts the time of a kernel: ``time_of``, or one that knows its machine
    code.
    """

    def __call__(self, work: Work, machine: Machine, *, held: Collection[str] = ()) -> NestTime: ...


def cost(
    works: Sequence[Work],
    on: str | Path | Machine = "h200",
    *,
    launch: str = "plain",
    warm: bool = False,
    assumed: tuple[str, ...] = (),
    timers: Sequence[Timer] = (),
) -> Report:
    """The cost of kernels on a machine, by the closed form; ``works`` are in the order they run.

    Kernels that compute of constants alone are kept from call to call, and cost nothing.

    ``launch``: "plain", from the host, "graph", or "dependent", a graph in which each kernel
    overlaps the one before; with the others, only kernels emitted to overlap do. ``warm``: before
    the first kernel, the cache holds the most recently used data; else all inputs come from global
    memory. ``assumed``: further assumptions for the report. ``timers``: functions that predict the
    time of each kernel, instead of the closed form. Raises ValueError for an unknown machine or
    launch, a CPU, no kernel at all, a rate that the machine lacks, or a program that does not fit
    it.
    """
    device = machine(on)
    check_runs_kernels(device)
    if not works:
        raise ValueError("there is no kernel whose cost could be told")
    if launch not in LAUNCHES:
        raise ValueError(
            message(f"unknown launch {launch!r}", hint=f"known: {', '.join(LAUNCHES)}")
        )
    times, held = list[NestTime](), dict[str, int]()
    timed = [*zip(works, timers or (known_time,) * len(works), strict=True)]
    timed = [(work, timer) for work, timer in timed if not work.kept]
    works = [work for work, _ in timed]
    if warm:
        for work in works:
            held = used(held, room_of(work, device.tiers[1]), device.tiers[1])
    for work, timer in timed:
        times.append(timer(work, device, held=tuple(held)))
        held = used(held, room_of(work, device.tiers[1]), device.tiers[1])
    said = ("the cache holds what was used last" if warm else "inputs come from global memory",)
    others = not_its_own((work.target for work in works), device)
    launched = _launches(works, [time.seconds for time in times], device, launch)
    hidden = _hidden(works, [time.seconds for time in times], device)
    found = _report(times, device, launched, hidden, (*said, *assumed, *others))
    return replace(found, by="closed form, warm cache") if warm else found


def known_time(work: Work, machine: Machine, *, held: Collection[str] = ()) -> NestTime:
    """``time_of``, remembered: schedules of several kernels differ in some of them."""
    return _time_of(Same(work), Same(machine), tuple(name for name in work.loaded if name in held))


@lru_cache(maxsize=4 * KEPT)
def _time_of(work: Same[Work], machine: Same[Machine], held: tuple[str, ...]) -> NestTime:
    return time_of(work.one, machine.one, held=held)


def check_runs_kernels(device: Machine) -> None:
    """Raises ValueError for a machine that is no GPU."""
    if device.kind != "gpu":
        raise ValueError(
            message(f"{device.name} runs no kernels: they are for GPUs", hint="name a GPU: h200")
        )


def not_its_own(targets: Iterable[str], device: Machine) -> tuple[str, ...]:
    """The assumptions for kernels that were compiled for these targets, in words."""
    return tuple(
        f"compiled for {target}: what a compiler would make of it for {device.target} is not known"
        for target in dict.fromkeys(targets)
        if target != device.target
    )


def used(held: Mapping[str, int], arrays: Mapping[str, int], cache: Tier) -> dict[str, int]:
    """The arrays that a cache holds after these were used, in the order of their last use.

    ``held`` and ``arrays``: bytes by name. An array stays if it and all that was used since fit.
    """
    order = [*((n, size) for n, size in held.items() if n not in arrays), *arrays.items()]
    kept, room = list[tuple[str, int]](), cache.bytes
    for name, size in reversed(order):
        room -= size
        if room < 0:
            break
        kept.append((name, size))
    return dict(reversed(kept))


def _report(
    times: Sequence[NestTime],
    device: Machine,
    launches: Sequence[float],
    hidden: Sequence[float],
    assumed: tuple[str, ...],
) -> Report:
    launched = sum(launches)
    seconds = launched + sum(time.seconds for time in times) - sum(hidden)
    moved = summed(time.bytes for time in times)
    busy = {name: part / seconds for name, part in summed(t.busy for t in times).items()}
    busy["launch"] = launched / seconds
    return Report(
        device.name,
        seconds * 1e6,
        moved,
        busy,
        limiting(busy),
        assumed=assumed,
        waves=tuple(time.waves for time in times),
        tail=tuple(time.tail for time in times),
        each=tuple(map(_alone, times, launches, hidden)),
    )


def _alone(time: NestTime, launched: float, hidden: float) -> tuple[float, str]:
    """The microseconds that a kernel adds to those of the kernels before, and what limits it."""
    taken = launched + time.seconds
    parts = {**time.busy, "launch": launched}
    return 1e6 * (taken - hidden), limiting({name: part / taken for name, part in parts.items()})


def _launches(
    works: Sequence[Work], seconds: Sequence[float], device: Machine, launch: str
) -> list[float]:
    """Seconds before each kernel in which no kernel runs."""
    befores = (None, *seconds[:-1])
    return [
        launching(
            device, launch, before, overlaps=work.overlaps and _begins_early(works, at, device)
        )
        for at, (work, before) in enumerate(zip(works, befores, strict=True))
    ]


def _begins_early(works: Sequence[Work], at: int, device: Machine) -> bool:
    """True if a program of a kernel finds room beside those of the kernel before that still run."""
    if not at:
        return False
    before, footprint = works[at - 1], works[at].footprint
    running = -(-(before.fixed or before.programs) // device.processors)
    return footprint.fits_beside(before.footprint, running, device)


def _hidden(works: Sequence[Work], seconds: Sequence[float], device: Machine) -> list[float]:
    """Seconds in which each kernel runs beside the one before: that one by few programs, which all
    run at once and leave each processor room for the next one, and this one in the loop that it
    runs before it waits.
    """
    return [
        min(seconds[at - 1 : at + 1])
        if at and work.early and _by_few(works[at - 1], device) and _begins_early(works, at, device)
        else 0.0
        for at, work in enumerate(works)
    ]


def _by_few(work: Work, device: Machine) -> bool:
    """True if fewer programs than places run a kernel, all of them at once."""
    at_once = device.processors * work.footprint.resident(device)
    return 0 < work.fixed < work.programs and work.fixed <= at_once
