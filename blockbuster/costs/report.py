"""What a cost model or the simulator says of a kernel or a plan on a machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Event:
    """What occupies a resource: a program's load, arithmetic or store, or a launch.

    ``start`` and ``end`` in microseconds from the start of the plan. ``processor``: the one it runs
    on, -1 for what belongs to none. ``kernel`` and ``program``: their numbers, in order.
    """

    resource: str
    start: float
    end: float
    processor: int = -1
    kernel: int = 0
    program: int = -1
    what: str = ""


@dataclass(frozen=True)
class Report:
    """Time, traffic and what limits it; the closed form and the simulator give the same fields.

    ``time_us``: microseconds. ``bytes``: by the name of the tier, what moves to and from it
    (global memory is "hbm" on GPUs, "dram" on CPUs). ``busy``: for each resource (tiers, "matrix",
    "vector", "special", "issue", "launch") the fraction of the time that it works. ``critical``:
    the resource that decides. ``timeline``: events in order of their starts; empty for the closed
    form. ``assumed``: what was taken for granted, in words.
    """

    machine: str
    time_us: float
    bytes: Mapping[str, int] = field(hash=False)
    busy: Mapping[str, float] = field(hash=False)
    critical: str
    timeline: tuple[Event, ...] = field(default=(), repr=False)
    assumed: tuple[str, ...] = ()
