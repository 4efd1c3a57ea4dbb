"""Measures that need no GPU: cost models that predict a candidate's seconds.

Each is a value that can be sent to another process, and is called with a candidate.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from blockbuster.costs import Report, cost, work
from blockbuster.emit.schedule.scheduled import Scheduled, unscheduled
from blockbuster.emit.schedule.script import checked_complete, replayed
from blockbuster.emit.target.targets import target_of
from blockbuster.emit.tile.array_dtypes import given_by, typed_for_gpu
from blockbuster.emit.tile.lower import lower_to_tiles
from blockbuster.errors import message
from blockbuster.ir.graph import Graph
from blockbuster.ir.types import Dim
from blockbuster.machines import Machine
from blockbuster.rules import safe
from blockbuster.simulator import Sized, simulated
from blockbuster.tiling.candidate import Candidate
from blockbuster.tiling.chain import Chain
from blockbuster.tiling.model import estimate
from blockbuster.tiling.realization import schedule_of


@dataclass(frozen=True)
class ByEquations:
    """Seconds by the source's equations."""

    chain: Chain
    machine: Machine

    def __call__(self, found: Candidate) -> float:
        """Equation 2."""
        return estimate(self.chain, found, self.machine).seconds


def closed_form(made: Scheduled, machine: Machine) -> Report:
    """The prediction of our closed form for a schedule."""
    return cost(work(made), machine, launch="graph", warm=True)


def event_by_event(made: Scheduled, machine: Machine) -> Report:
    """The prediction of the simulator for a schedule."""
    sized = Sized(made.program, made.known, made.target.name)
    return simulated((sized,), machine, launch="graph", warm=True)


@dataclass(frozen=True)
class BySchedule:
    """Seconds of our kernel of a candidate, called again and again in a graph.

    ``graph``: the fused program of the chain; ``sizes``: of its dims; ``report``: the model that
    looks at its schedule. Raises ValueError for sizes that are not the chain's and for a candidate
    that does not fit the machine, EmitError for one that no schedule of ours runs.
    """

    chain: Chain
    machine: Machine
    graph: Graph
    sizes: Mapping[Dim, int] = field(hash=False)
    report: Callable[[Scheduled, Machine], Report] = closed_form
    warps: int = 4
    stages: int = 2

    def __post_init__(self) -> None:
        if reason := _other_sizes(self.chain, self.sizes):
            raise ValueError(message(reason, hint="give the dims of the graph the chain's sizes"))

    @cached_property
    def start(self) -> Scheduled:
        """The program before the first move."""
        program = lower_to_tiles(safe(self.graph))
        typed = typed_for_gpu(self.graph, program, given_by(self.chain.dtype))
        return unscheduled(typed, self.sizes, target_of(self.machine.target))

    def __call__(self, found: Candidate) -> float:
        """The time that the model reports."""
        text = schedule_of(self.chain, found, warps=self.warps, stages=self.stages)
        made = checked_complete(replayed(self.start, text))
        return self.report(made, self.machine).time_us / 1e6


def _other_sizes(chain: Chain, sizes: Mapping[Dim, int]) -> str:
    """Why ``sizes`` are not those of the chain, or ""."""
    for loop, dim in chain.dims.items():
        if sizes.get(dim) != chain.sizes[loop]:
            size = sizes.get(dim, "none")
            return f"dim {dim} has the size {size}, and the chain's loop {loop} {chain.sizes[loop]}"
    return ""
