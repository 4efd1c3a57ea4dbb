"""Reports: the prediction of a cost model or the simulator for a kernel or plan on a machine."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CLOSED_FORM = "closed form, cold cache"
"""The model of the times that are printed without another name, and what the cache holds before."""

LATENCY = "latency"
"""What decides where no resource works half of the time: one thing waits for another."""


@dataclass(frozen=True)
class Event:
    """An interval in which a resource is busy: a program's load, arithmetic or store, or a launch.

    ``start`` and ``end`` are in microseconds from the start of the plan. ``processor``: where it
    runs, -1 for events without one. ``kernel`` and ``program``: their numbers, in order.
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
    """Time, traffic and the limiting resource; the closed form and the simulator share the fields.

    ``time_us``: microseconds. ``bytes``: traffic by the name of the tier (global memory is "hbm" on
    GPUs, "dram" on CPUs). ``busy``: for each resource (tiers, "matrix", "vector", "special",
    "issue", "launch") the fraction of the time in which it works. ``critical``: the resource that
    limits the time, or "latency". ``timeline``: events in order of their starts. ``use``: for each
    resource the working fraction in each of equal parts of the time; both are empty for the closed
    form. ``assumed``: the assumptions, in words. For each kernel, ``waves``: how many times its
    programs fill all processors, and ``tail``: the part of the processors' time that passes after
    the last program of each. ``by``: the model, and what the cache holds before the first kernel.
    ``each``: of the closed form, the microseconds that each kernel adds, and what limits it.
    """

    machine: str
    time_us: float
    bytes: Mapping[str, int] = field(hash=False)
    busy: Mapping[str, float] = field(hash=False)
    critical: str
    timeline: tuple[Event, ...] = field(default=(), repr=False)
    use: Mapping[str, tuple[float, ...]] = field(default_factory=dict, hash=False, repr=False)
    assumed: tuple[str, ...] = ()
    waves: tuple[float, ...] = ()
    tail: tuple[float, ...] = ()
    by: str = CLOSED_FORM
    each: tuple[tuple[float, str], ...] = ()

    def plot(self) -> Figure:
        """A figure of matplotlib: each processor over time, and the use of each resource.

        Raises DrawError if matplotlib is missing, ValueError for a report without a timeline.
        """
        from blockbuster.view.gantt import figure

        return figure(self)

    def to_json(self) -> str:
        """The report as a JSON object with the names of its fields."""
        return json.dumps(asdict(self), indent=1)

    def __str__(self) -> str:
        lines = [f"{in_us(self.time_us)} on {self.machine} ({self.by}), limited by {self.critical}"]
        lines.append(f"  {'resource':9} {'busy':>5}  bytes")
        for name, fraction in self.busy.items():
            moved = f"  {_megabytes(self.bytes[name])}" if name in self.bytes else ""
            lines.append(f"  {name:9} {fraction:5.0%}{moved}")
        for number, (waves, tail) in enumerate(zip(self.waves, self.tail, strict=True), 1):
            lines.append(f"  kernel {number}: {waves:.2g} waves, tail {tail:.0%}")
        lines += [f"  assumed: {what}" for what in self.assumed]
        return "\n".join(lines)


def in_us(microseconds: float) -> str:
    """A time in words.

    >>> in_us(12190.6), in_us(31.42)
    ('12,191 us', '31.4 us')
    """
    return f"{microseconds:,.{0 if microseconds >= 100 else 1}f} us"


def limiting(busy: Mapping[str, float]) -> str:
    """The resource that is busy longest, or "latency" if none is busy half of the time."""
    name = max(busy, key=lambda resource: busy[resource])
    return name if busy[name] >= 0.5 else LATENCY


def _megabytes(count: int) -> str:
    return f"{count / 1e6:,.1f} MB" if count >= 1e5 else f"{count:,} bytes"
