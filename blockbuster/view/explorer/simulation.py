"""A simulation as data for the page: processors over time, and the use of each resource."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

from blockbuster.costs.report import Report
from blockbuster.emit.kernel import Kernel
from blockbuster.emit.schedule.steps import cost_of
from blockbuster.machines import Machine, Tier, machine
from blockbuster.simulation import simulate

MOST_BARS = 6000
"""Bars of a timeline; where there are more, only some processors are shown."""

TILE, MOST_TILES = 64 * 128, 60_000
"""A simulation takes 20 microseconds for each tile that moves: more of them than a page is worth
are not simulated."""

DIGITS = 3  # of microseconds

Data = dict[str, Any]


def simulation_data(kernel: Kernel | None, on: str | Path | Machine) -> Data:
    """The simulation of a kernel on a machine; "missing" says why there is none."""
    if kernel is None:
        return {"missing": "No kernel was written, so that none is simulated."}
    moved = _moved(kernel)
    if moved > MOST_TILES * TILE:
        what = f"At these sizes {moved:,} elements move"
        hint = "a simulation takes longer than a page should. At smaller sizes there is one"
        return {"missing": f"{what}: {hint}."}
    device = machine(on)
    try:
        report = simulate(kernel, device, launch="graph")
    except ValueError as error:
        return {"missing": f"The kernel is not simulated on {device.name}.\n{error}"}
    every, bars = _bars(report)
    return {
        "machine": report.machine,
        "time": round(report.time_us, DIGITS),
        "critical": report.critical,
        "processors": device.processors,
        "every": every,
        "bars": bars,
        "launches": [_ends(e.start, e.end) for e in report.timeline if e.resource == "launch"],
        "resources": [
            {
                "name": resource,
                "kind": kind(device.tiers, resource),
                "busy": round(busy, DIGITS),
                "bytes": report.bytes.get(resource),
                "use": [round(part, 2) for part in report.use.get(resource, ())],
            }
            for resource, busy in report.busy.items()
        ],
        "assumed": list(report.assumed),
    }


def _moved(kernel: Kernel) -> int:
    """The elements that all kernels move."""
    cost = cost_of(kernel.derivation.final) if kernel.derivation else None
    return cost.elements if cost else 0


def kind(tiers: tuple[Tier, ...], resource: str) -> str:
    """The kind of a resource on every machine: tiers have other names on each."""
    kinds = dict(zip((tier.name for tier in tiers), ("memory", "cache", "local"), strict=False))
    return kinds.get(resource, resource)


def _bars(report: Report) -> tuple[int, dict[str, list[list[float]]]]:
    """Every how many-th processor is shown, and for each resource its bars.

    A bar is the processor, its start and end, the kernel and the program.
    """
    events = [event for event in report.timeline if event.processor >= 0]
    every = -(-len(events) // MOST_BARS) or 1
    found: dict[str, list[list[float]]] = defaultdict(list)
    for event in events:
        if event.processor % every == 0:
            where = [event.processor, *_ends(event.start, event.end), event.kernel, event.program]
            found[event.resource].append(where)
    return every, dict(found)


def _ends(start: float, end: float) -> list[float]:
    return [round(start, DIGITS), round(end, DIGITS)]
