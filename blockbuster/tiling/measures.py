"""What gives a candidate's seconds without a GPU: cost models by their names.

Each is a value that can be sent to another process, and is called with a candidate.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from blockbuster.costs import cost, work
from blockbuster.emit.schedule.scheduled import Scheduled, unscheduled
from blockbuster.emit.schedule.script import checked_complete, replayed
from blockbuster.emit.target.compiler import target_of
from blockbuster.emit.tile.array_dtypes import given_by, typed_for_gpu
from blockbuster.emit.tile.lower import lower_to_tiles
from blockbuster.errors import message
from blockbuster.ir.graph import Graph
from blockbuster.ir.types import Dim
from blockbuster.machines import Machine
from blockbuster.rules import safe
from blockbuster.tiling.candidate import Candidate
from blockbuster.tiling.chain import Chain
from blockbuster.tiling.model import estimate
from blockbuster.tiling.realization import schedule_of

MCFUSER, TIERED = "mcfuser", "tiered"


@dataclass(frozen=True)
class ByEquations:
    """Seconds by the source's equations."""

    chain: Chain
    machine: Machine

    def __call__(self, found: Candidate) -> float:
        """Equation 2."""
        return estimate(self.chain, found, self.machine).seconds


@dataclass(frozen=True)
class BySchedule:
    """Seconds of our kernel of a candidate, by the closed form of its schedule.

    ``graph``: the fused program of the chain; ``sizes``: of its dims. Raises EmitError for a
    candidate that no schedule of ours runs, ValueError for one that does not fit the machine.
    """

    chain: Chain
    machine: Machine
    graph: Graph
    sizes: Mapping[Dim, int] = field(hash=False)
    warps: int = 4
    stages: int = 2

    @cached_property
    def start(self) -> Scheduled:
        """The program before the first move."""
        program = lower_to_tiles(safe(self.graph))
        typed = typed_for_gpu(self.graph, program, given_by(self.chain.dtype))
        return unscheduled(typed, self.sizes, target_of(self.machine.target))

    def __call__(self, found: Candidate) -> float:
        """The closed form, for calls that follow one another in a graph."""
        text = schedule_of(self.chain, found, warps=self.warps, stages=self.stages)
        made = checked_complete(replayed(self.start, text))
        return cost(work(made), self.machine, launch="graph", warm=True).time_us / 1e6


def model_of(
    name: str,
    chain: Chain,
    machine: Machine,
    *,
    graph: Graph | None = None,
    sizes: Mapping[Dim, int] | None = None,
) -> Callable[[Candidate], float]:
    """The cost model of this name: "mcfuser", or "tiered", which needs the fused graph.

    Raises ValueError for another name, or a graph or sizes that are missing.
    """
    if name == MCFUSER:
        return ByEquations(chain, machine)
    if name != TIERED:
        known = f"known: {MCFUSER}, {TIERED}"
        raise ValueError(message(f"unknown cost model {name!r}", hint=known))
    if graph is None or sizes is None:
        raise ValueError("the model 'tiered' is about a schedule: give the fused graph and sizes")
    return BySchedule(chain, machine, graph, sizes)
