"""The second-stage cost model: a kernel's time from its machine code instead of its schedule.

A closed form (tiered.py) estimates how many instructions an iteration issues, how many bytes shared
memory moves and how many programs a processor holds. A compiled kernel shows these numbers. So each
phase of a nest is matched with a loop of the machine code, whose counts replace the estimates;
bytes of memory and cache, rounds of programs and launches are those of the closed form.

One run of a loop, with c programs of w warps on a processor of four schedulers, takes a mean of
these times: c x matrix, c x w / 4 x issue, c x w / 4 x 8 x special, shared memory, cache, memory,
and the chain of one program. The mean lies between the longest of them and their sum, because they
overlap in part. The chain itself is a sum wherever it waits until no matrix instruction runs, or
for loads.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from bench.costs.binary import Binary
from bench.costs.machine_loops import Code, is_of_group, shape_of
from blockbuster.costs.cached import from_memory
from blockbuster.costs.coefficients import Coefficients
from blockbuster.costs.lines import LINE
from blockbuster.costs.phases import Phase
from blockbuster.costs.steps import Rates, Step
from blockbuster.costs.tiered import NestTime, passed
from blockbuster.costs.work import Work
from blockbuster.emit.tile.layouts import GROUP
from blockbuster.errors import EmitError, message
from blockbuster.machines.machine import Machine

HALF = 2
"""Cycles in which a unit takes an instruction of a warp that is half as wide."""

NEARLY = 1.3
"""A loop is unrolled so many times even if its ratio to one run is smaller by this."""

DEPTH = 32
"""Bytes along the sum that a matrix instruction takes of each row and column, in any dtype."""


@dataclass(frozen=True)
class BinaryCoefficients:
    """How near machine code comes to a machine's rates, and how long a program waits.

    Fractions of rates: ``matrix``, where four warps multiply together, and ``apart``, where each
    does alone; ``memory`` and ``cache``, of bandwidths (beyond 1 where processors that ask for the
    same lines are served at once); ``issue``. ``burst``: how many times its share of memory a
    processor takes while others are idle. ``start``: seconds from a kernel's launch to its first
    load, beyond an empty kernel's. ``alone``: cycles from one instruction of a warp to its next
    where no other warp fills them; ``exchange``: cycles of a shuffle. ``queue``: how many times
    longer a load takes on a busy machine than on an idle one. ``overlap``: how well what takes
    place at once overlaps: the exponent of the mean that its times are added up by.
    ``bench/costs/fit.py`` fits them.
    """

    matrix: float = 1.0
    apart: float = 0.5
    memory: float = 0.97
    cache: float = 2.6
    issue: float = 0.93
    burst: float = 3.3
    start: float = 1e-6
    alone: float = 1.54
    exchange: float = 17.0
    queue: float = 1.43
    overlap: float = 2.5

    @property
    def moving(self) -> Coefficients:
        """Those of the coefficients that the closed form uses for memory."""
        return Coefficients(memory=self.memory, cache=self.cache, burst=self.burst)


FITTED_TO_BINARIES = BinaryCoefficients()


@dataclass(frozen=True)
class Counts:
    """The counts of one run of a phase in each warp: instructions, and bytes of shared memory.

    ``special``: instructions of special units, ``halves``: of units half as wide as usual;
    ``operations``: of matrix units, which ``fetched`` bytes of shared memory feed; ``apart``: warps
    multiply alone. ``drained``: what follows waits until no matrix instruction runs. ``unrolled``:
    an iteration does so many runs.
    """

    issue: float
    special: float
    halves: float
    shared: float
    shuffles: float
    operations: float
    fetched: float
    apart: bool
    drained: bool
    unrolled: int


def counts_of(code: Code, unrolled: int = 1) -> Counts:
    """The counts of a run; ``unrolled``: how many runs an iteration of the machine code does."""
    fetched = sum(fetched_by(name) * count for name, count in code.matrix.items())
    apart = any(not is_of_group(name) for name in code.matrix)
    return Counts(
        issue=code.issue / unrolled,
        special=code.count("special") / unrolled,
        halves=code.count("halves") / unrolled,
        shared=code.moved("shared", "copies") / unrolled,
        shuffles=code.count("shuffles") / unrolled,
        operations=code.operations / unrolled,
        fetched=fetched / unrolled,
        apart=apart,
        drained=0 in code.waits or bool(apart and code.count("special")),
        unrolled=unrolled,
    )


def fetched_by(name: str) -> float:
    """Bytes of shared memory that a matrix instruction reads, for each warp that issues it.

    Four warps share what theirs reads. Its left side counts even where it lies in registers.
    """
    if not is_of_group(name):
        return 0.0  # operands are in registers: loading them is counted as it is
    rows, columns, _ = shape_of(name)
    return DEPTH * (rows + columns) / GROUP


def matched(phases: Sequence[Phase], binary: Binary, warps: int) -> tuple[Counts | None, ...]:
    """The counts of each phase, in order; None for a loop that machine code does not have.

    Loops stand in machine code in the order of the phases. Where there are more, the short ones
    finish what an unrolled loop leaves; where there are fewer, short phases were unrolled.
    """
    bodies = [at for at, phase in enumerate(phases) if phase.dims]
    loops = list(binary.loops)
    while len(loops) > len(bodies):
        loops.remove(min(loops, key=lambda loop: loop.code.issue))
    while len(bodies) > len(loops):
        bodies.remove(min(bodies, key=lambda at: phases[at].instructions))
    found: list[Counts | None] = [None] * len(phases)
    found[0] = counts_of(binary.straight)
    for at, loop in zip(bodies, loops, strict=True):
        found[at] = counts_of(loop.code, unrolled(phases[at], loop.code, warps))
    return tuple(found)


def unrolled(phase: Phase, code: Code, warps: int) -> int:
    """How many runs of a phase an iteration of its machine code does.

    Told by what it loads, and by what matrix units do where they do anything: a power of two that
    divides its loads.
    """
    loads = code.count("loads") + code.count("copies")
    expected = sum(phase.loaded.values())
    if not phase.runs or not expected or not loads:
        return 1
    ratio = code.moved("loads", "copies") * phase.runs * warps / expected
    matrix = sum(count for (unit, _), count in phase.operations.items() if unit == "matrix")
    if matrix and code.operations:
        ratio = min(ratio, code.operations * phase.runs * warps / matrix)
    times = 1
    while 2 * times <= min(ratio * NEARLY, loads) and loads % (2 * times) == 0:
        times *= 2
    return times


@dataclass(frozen=True)
class CodeRates:
    """The rates of a kernel whose machine code is known."""

    rates: Rates
    binary: Binary
    fitted: BinaryCoefficients
    counts: tuple[Counts | None, ...] = field(hash=False)

    @property
    def resources(self) -> tuple[str, ...]:
        """The names of what can be busy."""
        return self.rates.resources

    @property
    def between(self) -> float:
        """That of the closed form."""
        return self.rates.between

    def moved(self) -> dict[str, int]:
        """Bytes that move to and from each tier: as the closed form counts them."""
        return self.rates.moved()

    def total(self, name: str) -> float:
        """Seconds in which a resource works, all processors being busy."""
        machine, programs = self.rates.machine, self.rates.work.programs
        each = sum(step.runs * step.resources.get(name, 0.0) for step in self._usual)
        return each * programs / machine.processors

    @cached_property
    def _usual(self) -> tuple[Step, ...]:
        """The steps where all processors are busy."""
        return self.steps(self.rates.machine.processors)

    def steps(self, active: int) -> tuple[Step, ...]:
        """The step of each phase, ``active`` programs or processors sharing memory and cache."""
        plain = self.rates.steps(active)
        phases = self.rates.work.phases
        return tuple(map(self._step, plain, phases, self.counts))

    def _step(self, step: Step, phase: Phase, counts: Counts | None) -> Step:
        if not step.runs:
            return step
        machine = self.rates.machine
        cache = machine.tiers[1]
        asked = phase.lines * LINE / phase.runs * machine.processors
        resources = {
            **step.resources,
            cache.name: asked / (cache.bandwidth * self.fitted.cache),
            **self._computing(phase, counts),
        }
        return replace(step, resources=resources, chain=self._chain(phase, counts, resources))

    def _computing(self, phase: Phase, counts: Counts | None) -> dict[str, float]:
        """Seconds of one run of a program that is alone on its processor."""
        if counts is None:  # it stands among what runs once
            return dict.fromkeys(("issue", "special", "vector", "matrix"), 0.0)
        machine, warps = self.rates.machine, self.binary.warps
        each, lanes = machine.processors, machine.limits.warp
        local = machine.tiers[2]
        matrix = 0.0
        if counts.operations:
            rate = self._matrix_rate / each
            reached = self.fitted.apart if counts.apart else self.fitted.matrix
            matrix = counts.operations * warps / (rate * reached)
        return {
            local.name: (counts.shared + counts.fetched) * warps * each / local.bandwidth,
            "matrix": matrix,
            "vector": HALF * counts.halves * warps * each / machine.issue,
            "special": counts.special * warps * lanes * each / machine.special,
            "issue": counts.issue * warps * each / (machine.issue * self.fitted.issue),
        }

    @property
    def _matrix_rate(self) -> float:
        """Operations a second of matrix units, in the slowest dtype that the kernel has.

        Iterations of a loop may also stand before it, so a phase does not tell.
        """
        units = self.rates.work.operations
        found = [self.rates.machine.rate(*unit) for unit in units if unit[0] == "matrix"]
        if not found:
            what = f"{self.binary.function} uses matrix units, its tile program does not"
            raise EmitError(message(what, hint="give the binary of this very schedule"))
        return min(found)

    def _chain(self, phase: Phase, counts: Counts | None, each: Mapping[str, float]) -> float:
        """What follows one another in a run of one program."""
        if counts is None:
            return 0.0
        found, waits = self._own(phase, counts, each), bool(phase.waits or not phase.dims)
        latency, arrival = self._latency(phase) / counts.unrolled, self._arrival(each)
        if waits:
            copied = each[self.rates.machine.tiers[2].name] if phase.copied else 0.0
            coming = max(1, phase.waits) * latency + arrival
            return found + (coming + copied if phase.loaded else 0.0)
        found += phase.exposed(latency + arrival, found)
        if not phase.ahead:
            return found
        together = phase.dots and not counts.apart and counts.drained
        meanwhile = each["matrix"] / phase.dots if together else 0.0
        return max(found, (found + latency + arrival - meanwhile) / phase.ahead)

    def _own(self, phase: Phase, counts: Counts, each: Mapping[str, float]) -> float:
        """The chain of a run whose loads are there already."""
        machine, fitted = self.rates.machine, self.fitted
        cycles = counts.issue * fitted.alone + counts.shuffles * fitted.exchange
        special = each["special"] * max(0.0, machine.limits.schedulers / self.binary.warps - 1.0)
        found = max(cycles / machine.clock, special)
        copied = phase.copied and (phase.waits or not phase.dims)
        return found + (each["matrix"] if counts.drained or copied else 0.0)

    def _latency(self, phase: Phase) -> float:
        memory, cache = self.rates.machine.tiers[:2]
        far = any(self.rates.missed.get(name, 0) for name in phase.loaded)
        return self.fitted.queue * (memory.latency if far else cache.latency)

    def _arrival(self, each: Mapping[str, float]) -> float:
        memory, cache = (tier.name for tier in self.rates.machine.tiers[:2])
        return max(each[memory], each[cache])


def time_of_binary(
    binary: Binary,
    work: Work,
    machine: Machine,
    *,
    held: Collection[str] = (),
    coefficients: BinaryCoefficients = FITTED_TO_BINARIES,
) -> NestTime:
    """The time of one compiled kernel; ``held`` are arrays that the cache has before it begins.

    Raises EmitError for a kernel of which no program fits a processor of the machine.
    """
    resident = binary.resident(machine.limits)
    if not resident:
        raise EmitError(
            message(
                f"no program of {binary.function} fits a processor of {machine.name}: it takes "
                f"{binary.shared:,} bytes of shared memory and {binary.registers} registers in "
                f"each thread of {binary.warps} warps",
                hint="choose smaller blocks, or fewer stages",
            )
        )
    wave = min(work.programs, machine.processors * resident)
    missed = from_memory(work, machine, wave, held)
    rates = Rates(work, machine, coefficients.moving, missed)
    counts = matched(work.phases, binary, work.warps)
    code = CodeRates(rates, binary, coefficients, counts)
    return passed(work, machine, code, resident, coefficients.start)
