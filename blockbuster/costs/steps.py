"""One run of a phase in one program: the busy time of each resource, and the longest chain."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from blockbuster.costs.coefficients import Coefficients
from blockbuster.costs.phases import Phase
from blockbuster.costs.work import Work
from blockbuster.machines.machine import Machine


@dataclass(frozen=True)
class Step:
    """``resources``: seconds of work on each, if the program is alone on its processor.

    ``chain``: seconds of steps that wait for one another. ``runs``: in a program, on average;
    ``each``: in each program, if they differ. ``overlap``: how well the parts overlap. ``streams``:
    nothing waits for the results, so the chain delays no resource. ``fill``: the part of the chain
    in which a loop waits for its first loads. ``values``: seconds in which a program alone on its
    processor computes values other than dots, if nothing but units and issue slots delays it.
    ``places``: seconds in which it finds places of windows between its dots and nothing else is
    done, where programs side by side find theirs at the same time.
    """

    runs: float
    resources: Mapping[str, float] = field(hash=False)
    chain: float
    each: tuple[float, ...] = ()
    overlap: float = math.inf
    streams: bool = False
    fill: float = 0.0
    values: float = 0.0
    places: float = 0.0

    def seconds(self, programs: int) -> float:
        """Of one run in each of so many programs, side by side on a processor."""
        parts = [programs * each for each in self.resources.values()]
        return self.combined(parts, self.chain, self.places)

    def combined(self, parts: Sequence[float], chain: float, alone: float = 0.0) -> float:
        """Seconds of the whole step: between the longest part (``overlap`` without bounds: all
        others run meanwhile) and the sum of all (1). No part overlaps with what runs ``alone``.
        """
        if self.streams:
            return max(_mean(parts, self.overlap) + alone, chain)
        return _mean((*parts, chain), self.overlap) + alone


def _mean(parts: Sequence[float], exponent: float) -> float:
    longest = max(parts, default=0.0)
    if not longest or math.isinf(exponent):
        return longest
    total = sum([(part / longest) ** exponent for part in parts])
    return float(longest * total ** (1 / exponent))


@dataclass(frozen=True)
class Rates:
    """The rates of a machine for a kernel's work.

    ``missed``: bytes that are loaded from memory because the cache has them not, by array.
    """

    work: Work
    machine: Machine
    fitted: Coefficients
    missed: Mapping[str, int] = field(hash=False)

    @property
    def resources(self) -> tuple[str, ...]:
        """The names of the resources."""
        tiers = tuple(tier.name for tier in self.machine.tiers[:3])
        return (*tiers, "matrix", "vector", "special", "issue")

    @property
    def between(self) -> float:
        """Seconds in which matrix units stand still between two places of one program."""
        return self.fitted.between / self.machine.clock

    def moved(self) -> dict[str, int]:
        """Bytes that move to and from each tier."""
        memory, cache, local = self.resources[:3]
        stored = sum(self.work.stored.values())
        shared = sum(phase.copied + phase.fetched for phase in self.work.phases)
        return {
            memory: sum(self.missed.values()) + stored,
            cache: self.work.moved,
            local: shared * self.work.crowded,
        }

    def total(self, name: str) -> float:
        """Seconds in which a resource works, all processors being busy."""
        each = sum([step.runs * step.resources.get(name, 0.0) for step in self._usual])
        return each * self.work.programs / self.machine.processors

    @cached_property
    def _usual(self) -> tuple[Step, ...]:
        """The steps where all processors are busy."""
        return tuple(self._step(phase, self.machine.processors) for phase in self.work.phases)

    def steps(self, active: int) -> tuple[Step, ...]:
        """The step of each phase, ``active`` programs or processors sharing memory and cache."""
        if active == self.machine.processors:
            return self._usual
        return tuple(self._step(phase, active) for phase in self.work.phases)

    def _step(self, phase: Phase, active: int) -> Step:
        if not phase.runs:
            return Step(0.0, {}, 0.0, phase.each, self.fitted.overlap)
        found = {**self._moving(phase, active), **self.computing(phase)}
        each = {name: seconds / phase.runs for name, seconds in found.items()}
        fill = self._fill(phase, each)
        chain = self._chain(phase, each) + fill
        runs = phase.runs / self.work.programs
        streams = is_stream(phase)
        overlap = self.fitted.streams if streams else self.fitted.overlap
        values = self._values(phase, each)
        places = self._places(phase)
        return Step(runs, each, chain, phase.each, overlap, streams, fill, values, places)

    def _moving(self, phase: Phase, active: int) -> dict[str, float]:
        """Seconds of all runs, if one processor did them with its share of the tiers."""
        memory, cache, local = self.machine.tiers[:3]
        processors = self.machine.processors
        share = max(min(active, processors), processors / self.fitted.burst)
        stored = sum(phase.stored.values())
        missed = sum(count * self._missing(name) for name, count in phase.loaded.items())
        shared = (phase.copied + phase.fetched) * self.work.crowded
        sectors = phase.sectors * processors / (cache.bandwidth * self.fitted.cache)
        asked = phase.lines * self.fitted.request / self.machine.clock
        return {
            memory.name: (missed + stored) * share / (memory.bandwidth * self.fitted.memory),
            cache.name: max(sectors, asked),
            local.name: shared * processors / local.bandwidth,
        }  # fmt: skip

    def _missing(self, name: str) -> float:
        """The fraction of what is loaded of an array that comes from memory."""
        return self.missed[name] / self.work.loaded[name] if self.work.loaded[name] else 0.0

    def computing(self, phase: Phase) -> dict[str, float]:
        """Seconds of all runs, if one processor did them."""
        each, crowded = self.machine.processors, self.work.crowded
        matrix = vector = 0.0
        for (unit, dtype), count in phase.operations.items():
            seconds = count * each / self.machine.rate(unit, dtype)
            if unit == "matrix":
                matrix += seconds / (self.fitted.apart if phase.apart else self.fitted.matrix)
            else:
                vector += seconds
        machine, reached = self.machine, self.fitted.issue
        warps = phase.issued(crowded) / machine.limits.warp
        special = phase.special - phase.repeated
        return {
            "matrix": matrix * crowded,
            "vector": vector * crowded,
            "special": special * each / machine.special * crowded,
            "issue": warps * each / (machine.issue * reached),
        }

    def _values(self, phase: Phase, each: Mapping[str, float]) -> float:
        """Seconds in which one run computes values other than dots."""
        warps = phase.computing * self.work.crowded / phase.runs / self.machine.limits.warp
        issuing = warps * self.machine.processors / (self.machine.issue * self.fitted.issue)
        return max(issuing, each["vector"], each["special"])

    def _places(self, phase: Phase) -> float:
        """Seconds of one run in which a warp finds places of windows while no dot of its program
        runs: each instruction waits for the one before.
        """
        if not (phase.dots and phase.ahead):
            return 0.0
        warps = self.machine.limits.warp * self.work.warps / self.work.crowded
        return self.fitted.place * phase.places / phase.runs / warps / self.machine.clock

    def _chain(self, phase: Phase, each: Mapping[str, float]) -> float:
        """What follows one another in a run: dots, what is computed between them, and waits."""
        found = self._own(phase, each)
        coming = self._latency(phase) + self._arrival(each)
        if phase.waits:
            coming *= self._turns(phase) / self.together(phase)
            if self.work.ahead and not phase.dims:  # all but the first places asked before
                first = min(1.0, self.work.fixed / self.work.programs)
                later = max(0.0, (found + coming) / self.work.ahead - found)
                coming = first * coming + (1.0 - first) * later
            return found + coming + self._copying(phase)
        found += phase.exposed(coming, found)
        if not phase.ahead:
            return found
        waited = max(found, self._loaded_ahead(phase, each, found, coming))
        first = min(1.0, phase.ahead * self._entries(phase) / phase.runs)
        return first * found + (1.0 - first) * waited

    def _own(self, phase: Phase, each: Mapping[str, float]) -> float:
        """The chain of a run whose loads are there already.

        Of several chains, one computes while matrix units have the dots of another; a warp issues
        the instructions of all.
        """
        clock, fitted = self.machine.clock, self.fitted
        computing = self.issuing(phase, each)
        serial = phase.dots and not is_stream(phase)
        dots = max(each["matrix"], phase.turns * fitted.turn / clock)
        in_turn = serial and phase.chains == 1
        found = dots + computing if in_turn else max(dots, computing)
        cycles = phase.dots * fitted.dot if serial else 0.0
        cycles += phase.folds * fitted.fold + phase.exchanges * fitted.exchange
        cycles += 0.0 if phase.dims else fitted.begin
        return found + cycles / phase.chains / clock

    def issuing(self, phase: Phase, each: Mapping[str, float]) -> float:
        """Seconds of one run in which a warp issues its own instructions, one after the other.

        ``each``: seconds of one run by resource.
        """
        limits, warps = self.machine.limits, self.work.warps
        own = phase.issued(self.work.crowded) / limits.warp / warps / phase.runs
        special = each["special"] * max(1.0, limits.schedulers / warps)
        return max(own * self.fitted.alone / self.machine.clock, special, each["vector"])

    def _loaded_ahead(
        self, phase: Phase, each: Mapping[str, float], own: float, coming: float
    ) -> float:
        """How long a run takes if it waits for loads that began in a run before it.

        Triton begins the loads of a later run where a run ends, and waits for those of the next
        where it begins: loads that run one ahead meet nothing of the program's own but the dots
        that four warps have begun together and not yet waited for.
        """
        meanwhile = 0.0
        if phase.dots and not phase.apart:
            meanwhile = own if is_stream(phase) else each["matrix"] / phase.dots
        return (own + coming - meanwhile) / phase.ahead

    def together(self, phase: Phase) -> float:
        """How many runs wait for their loads together: compilers unroll loops without dots and
        other loops in them, at most as far as the loop runs.
        """
        depth = len(phase.dims)
        holds = any(len(p.dims) > depth and p.dims[:depth] == phase.dims for p in self.work.phases)
        if not phase.dims or phase.dots or phase.across or holds:
            return 1.0
        return max(1.0, min(self.fitted.unrolled, phase.runs / self._entries(phase)))

    def _turns(self, phase: Phase) -> float:
        """How often a thread waits for loads in a run that loads tiles across rows of memory."""
        each = phase.across / phase.runs / (self.work.warps * self.machine.limits.warp)
        return max(1.0, each / self.fitted.held)

    def _copying(self, phase: Phase) -> float:
        """Seconds in which a run stores to shared memory what it has loaded."""
        processors, local = self.machine.processors, self.machine.tiers[2]
        return phase.copied / phase.runs * self.work.crowded * processors / local.bandwidth

    def _fill(self, phase: Phase, each: Mapping[str, float]) -> float:
        """The wait for the first tiles of a loop, spread over its runs."""
        if not phase.ahead:
            return 0.0
        return (self._latency(phase) + self._arrival(each)) * self._entries(phase) / phase.runs

    def _entries(self, phase: Phase) -> int:
        """How often the loop of a phase is entered."""
        outer = [p for p in self.work.phases if p.dims == phase.outside]
        return outer[0].runs if outer else self.work.programs

    def _arrival(self, each: Mapping[str, float]) -> float:
        """Seconds until a run's bytes are here, once they come."""
        memory, cache = (tier.name for tier in self.machine.tiers[:2])
        return max(each[memory], each[cache])

    def _latency(self, phase: Phase) -> float:
        memory, cache = self.machine.tiers[:2]
        far = any(self._missing(name) > 0 for name in phase.loaded)
        return self.fitted.queue * (memory.latency if far else cache.latency)


def is_stream(phase: Phase) -> bool:
    """True if loads run ahead of dots whose results nothing in the loop waits for."""
    ahead = phase.dots and phase.ahead and not phase.waits
    return bool(ahead and not phase.stored and not _on_vector_units(phase))


def _on_vector_units(phase: Phase) -> bool:
    return any(count for (unit, _), count in phase.operations.items() if unit == "vector")
