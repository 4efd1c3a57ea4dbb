"""The cost of a schedule (price.py): the closed form's time on the machine of its target."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from blockbuster.costs import Report, Work
from blockbuster.costs.coefficients import FITTED
from blockbuster.costs.report import in_us
from blockbuster.costs.work import running
from blockbuster.emit.tile.traffic import Arithmetic
from blockbuster.machines import Machine, choice_weights
from blockbuster.selection.priors import PRIORS

WEIGHTS = choice_weights()
MATRIX, EXACT, VECTOR = WEIGHTS.matrix, WEIGHTS.exact, WEIGHTS.vector
"""Operations that take as long as moving one element: on matrix units, in dots of float32, which no
matrix unit takes, and of other units. They bound how much work may be done again."""


@dataclass(frozen=True)
class Cost:
    """The work of each kernel of a schedule, and the closed form's report on all together.

    ``combining``: for each running kernel, of how many loops in chunks it combines the partial
    results while it does little else.

    Inputs come from global memory: of 18 programs on an H200 the first choice was within 15% of the
    best of some 24 schedules for 18 if they do, and for 15 if the cache holds them
    (bench/results/2026-11-22-h200-costs).
    """

    works: tuple[Work, ...]
    report: Report
    machine: Machine
    combining: tuple[int, ...] = ()

    @property
    def combined(self) -> int:
        """Of how many loops in chunks the partial results are combined."""
        return sum(self.combining)

    @property
    def microseconds(self) -> float:
        """The time of the kernels, with launches and waits for partial results."""
        return self.report.time_us + PRIORS.combining_us * self.combined

    @property
    def predicted(self) -> float:
        """The time that is told of the kernels: each is launched by the host, the cache is cold."""
        return self.microseconds + launch_by_host(self.machine) * len(self.running)

    @property
    def each(self) -> tuple[tuple[float, str], ...]:
        """The part of each running kernel in ``predicted``, and what limits the kernel."""
        host = launch_by_host(self.machine)
        pairs = zip(self.report.each, self.combining, strict=True)
        each = PRIORS.combining_us
        return tuple((us + each * count + host, limit) for (us, limit), count in pairs)

    @property
    def launching(self) -> float:
        """The part of the time that kernels take to begin, whatever they do."""
        return (self.machine.launch.graph + FITTED.start) * len(self.running) * 1e6

    @cached_property
    def running(self) -> tuple[Work, ...]:
        """The kernels of each call: those of constants are kept, and cost nothing."""
        return running(self.works)

    @cached_property
    def moved(self) -> int:
        """Bytes that programs load and store."""
        return sum(one.moved for one in self.running)

    @property
    def spills(self) -> bool:
        """True if a kernel may want more registers than there are."""
        return self.spills_beside({})

    def spills_beside(self, rooms: Mapping[int, float]) -> bool:
        """The same where kernels have other ``rooms`` than ``register_room``, by number."""
        numbered = enumerate((one.footprint for one in self.works), start=1)
        return any(
            f.registers > rooms.get(at, PRIORS.register_room) * f.available(self.machine)
            for at, f in numbered
        )

    @property
    def least(self) -> float:
        """Microseconds that no other schedule of the same kernels goes below.

        Their launches, and for each its arithmetic on matrix units, or to read and write once what
        it touches, at the rate of the cache that all processors share.
        """
        cache = self.machine.tiers[1].bandwidth
        found = self.machine.launch.graph * len(self.running)
        for one in self.running:
            units = one.operations.items()
            matrix = sum(n / self.machine.rate(*unit) for unit, n in units if unit[0] == "matrix")
            found += max(matrix, sum(one.unique.values()) / cache) / PRIORS.cost_optimism
        return found * 1e6

    def __str__(self) -> str:
        return f"{in_us(self.microseconds)}, limited by {self.report.critical}"


def launch_by_host(machine: Machine) -> float:
    """Microseconds by which a launch by the host takes longer than one in a graph."""
    return (machine.launch.plain - machine.launch.graph) * 1e6


def in_elements(work: Arithmetic, *, exact: bool) -> int:
    """The elements that are moved in the time that ``work`` takes; ``exact``: dots of float32."""
    return work.matrix // (EXACT if exact else MATRIX) + work.vector // VECTOR
