"""A simulation as data for the page: processors over time, and the use of each resource."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from blockbuster.costs.report import Report
from blockbuster.emit.kernel import Kernel
from blockbuster.emit.schedule.steps import cost_of
from blockbuster.emit.tile.program import TileProgram
from blockbuster.emit.tile.trips import walked_in
from blockbuster.ir.types import Dim, size_class
from blockbuster.machines import Machine, Tier, machine
from blockbuster.simulation import simulate

MOST_BARS = 6000
"""Bars of a timeline; where there are more, only some processors are shown."""

TILE, MOST_TILES = 64 * 128, 20_000
"""A simulation takes 30 microseconds for each tile that moves. Where more of them move than a page
is worth, fewer programs of the launch grid are simulated."""

DIGITS = 3  # of microseconds

Data = dict[str, Any]


def simulation_data(kernel: Kernel | None, on: str | Path | Machine) -> Data:
    """The simulation of a kernel on a machine; "missing" says why there is none."""
    if kernel is None:
        return {"missing": "No kernel was written, so that none is simulated."}
    device = machine(on)
    sample, shrunk, moved = sampled(kernel)
    if moved > MOST_TILES * TILE:
        what = f"At these sizes {moved:,} elements move, in the fewest programs that there can be"
        hint = "a simulation takes longer than a page should. At smaller sizes there is one"
        return {"missing": f"{what}: {hint}."}
    try:
        report = simulate(sample, device, launch="graph")
    except ValueError as error:
        return {"missing": f"The kernel is not simulated on {device.name}.\n{error}"}
    every, bars = _bars(report)
    return {
        "machine": report.machine,
        "by": report.by,
        "sample": [[dim, size, kernel.sizes[dim]] for dim, size in shrunk.items()],
        "shortened": list(shortened(kernel.tile_program, shrunk)) if kernel.tile_program else [],
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


def sampled(kernel: Kernel) -> tuple[Kernel, dict[Dim, int], int]:
    """The kernel with so few programs that its simulation takes about half a second.

    Dims of the launch grid are halved, the outermost first, until little enough moves: programs
    do not depend on each other, so those that are left run as before. Dims whose loops would become
    shorter, too (``shortened``), come last; dims whose sizes follow from others stay. Also returns
    the dims that were made smaller, with their sizes, and about how many elements move then.
    """
    program, moved = kernel.tile_program, _moved(kernel)
    shrunk: dict[Dim, int] = {}
    if program is None:
        return kernel, shrunk, moved
    bound = {dim for rule in program.rules for dim in (rule.dim, *rule.length.dims)}
    grid = dict.fromkeys(size_class(dim) for nest in program.nests for dim in nest.grid)
    loops = shortened(program, grid)
    for dim in sorted(grid, key=lambda dim: dim in loops):
        if dim in bound or dim not in kernel.sizes:
            continue
        size, least = kernel.sizes[dim], kernel.tiles.get(dim, 1)
        while moved > MOST_TILES * TILE and size >= 2 * least:
            moved, size = moved // (4 if dim in loops else 2), size // 2
            shrunk[dim] = size
    return replace(kernel, sizes={**kernel.sizes, **shrunk}), shrunk, moved


def shortened(program: TileProgram, dims: Iterable[Dim]) -> tuple[Dim, ...]:
    """Those of ``dims`` over which programs loop, too: keys of as many rows as there are queries.
    """
    loops = {
        size_class(dim) for nest in program.nests for dim in walked_in(nest) if dim not in nest.grid
    }
    return tuple(dim for dim in dims if dim in loops)


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
