"""The report of a simulation: time, bytes, and the use of resources over time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from blockbuster.costs.report import Event, Report, limiting
from blockbuster.simulator.device import Device
from blockbuster.simulator.programs import Programs

Numbers = NDArray[np.float64]
MICRO = 1e6
SLICES = 200
"""Into how many equal parts the time is divided for ``Report.use``."""


@dataclass(frozen=True)
class Ran:
    """A kernel that ran: seconds of its launch, of its first program's start, of its end.

    ``count``: its programs; ``resident``: those of a processor side by side. ``group``: iterations
    taken together.
    """

    programs: Programs
    count: int
    resident: int
    group: int
    launched: float
    started: float
    ended: float


def summary(device: Device, kernels: Sequence[Ran], assumed: tuple[str, ...]) -> Report:
    """The report of all kernels that ran on ``device``."""
    end = max(ran.ended for ran in kernels)
    launching = sum(ran.started - ran.launched for ran in kernels)
    uses = _uses(device)
    busy = {name: float(used[:, 2].sum()) / end for name, used in uses.items()}
    busy["launch"] = launching / end
    return Report(
        machine=device.machine.name,
        time_us=end * MICRO,
        bytes={tier: round(moved) for tier, moved in _bytes(device).items()},
        busy=busy,
        critical=limiting(busy),
        timeline=tuple(sorted(_events(kernels), key=lambda event: event.start)),
        use={name: _use(used, end) for name, used in uses.items()},
        assumed=(*assumed, *_grouped(kernels)),
        waves=tuple(ran.count / (device.machine.processors * ran.resident) for ran in kernels),
        tail=tuple(_tail(ran, device.machine.processors) for ran in kernels),
    )


def _tail(ran: Ran, processors: int) -> float:
    """The part of the processors' time that passes after the last program of each."""
    ends: dict[int, float] = {}
    for stretch in ran.programs.stretches:
        ends[stretch.processor] = max(stretch.end, ends.get(stretch.processor, 0.0))
    took = ran.ended - ran.started
    passed = sum(ran.ended - end for end in ends.values()) + took * (processors - len(ends))
    return passed / (took * processors) if took else 0.0


def _bytes(device: Device) -> dict[str, float]:
    """Bytes by tier; memory gets some day what programs stored and the cache still has."""
    memory = device.machine.memory.name
    moved = device.tally.bytes
    return {**moved, memory: moved[memory] + device.cache.unwritten()}


def _events(kernels: Sequence[Ran]) -> list[Event]:
    found = []
    for number, ran in enumerate(kernels):
        if ran.started > ran.launched:
            found.append(Event("launch", ran.launched * MICRO, ran.started * MICRO, kernel=number))
        found += [
            Event(
                s.resource, s.start * MICRO, s.end * MICRO, s.processor, number, s.program, s.what
            )
            for s in ran.programs.stretches
        ]
    return found


def _uses(device: Device) -> dict[str, Numbers]:
    """For each resource its jobs: start, end, and the seconds that they took of all of it."""
    machine, tally = device.machine, device.tally
    found: dict[str, list[tuple[float, float, float]]] = defaultdict(list)
    for job, resource, seconds in tally.taken:
        found[resource].append((job.began, job.ended, seconds))
    for job, demand in tally.computed:
        for unit, seconds in demand.seconds.items():
            found[unit].append((job.began, job.ended, seconds / machine.processors))
    order = (*(tier.name for tier in machine.tiers), "matrix", "vector", "special", "issue")
    return {name: np.array(found[name]) for name in order if found.get(name)}


def _use(jobs: Numbers, end: float) -> tuple[float, ...]:
    """The part of a resource that is used in each of ``SLICES`` equal parts of the time.

    What a job takes is spread evenly from its start to its end.
    """
    edges = np.linspace(0.0, end, SLICES + 1)
    return tuple((np.diff(_taken(jobs, edges)) * SLICES / end).tolist())


def _taken(jobs: Numbers, edges: Numbers) -> Numbers:
    """What had been taken up to each of ``edges``: straight lines between starts and ends."""
    began, ended, used = jobs.T
    rates = used / np.maximum(ended - began, np.finfo(float).tiny)
    at = np.concatenate([began, ended])
    order = np.argsort(at, kind="stable")
    times, steps = at[order], np.concatenate([rates, -rates])[order]
    taken = np.concatenate([[0.0], np.cumsum(np.diff(times) * np.cumsum(steps)[:-1])])
    return np.asarray(np.interp(edges, times, taken, left=0.0))


def _grouped(kernels: Sequence[Ran]) -> Iterator[str]:
    for number, ran in enumerate(kernels, 1):
        if ran.group > 1:
            yield f"kernel {number}: {ran.group} iterations of a loop are taken together"
