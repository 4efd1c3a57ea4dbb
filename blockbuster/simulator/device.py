"""A machine while it runs: its clock, what all processors share, and what each has of its own."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from blockbuster.costs.coefficients import Coefficients
from blockbuster.machines.machine import Machine
from blockbuster.simulator.cache import Cache
from blockbuster.simulator.clock import Amounts, Clock
from blockbuster.simulator.demand import Demand
from blockbuster.simulator.sharing import Job, Shared


@dataclass
class Tally:
    """What was done.

    ``bytes``: by tier. ``moved``: jobs with the seconds that they took of all of memory and cache.
    ``computed``: jobs with what they took of one processor.
    """

    bytes: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    moved: list[tuple[Job, float, float]] = field(default_factory=list)
    computed: list[tuple[Job, Demand]] = field(default_factory=list)


class Device:
    """The state of a machine: resources give a second of themselves in a second.

    Memory and cache are shared by all processors, one of which takes at most ``burst`` times its
    part of them. Each processor has units of its own.
    """

    def __init__(self, machine: Machine, coefficients: Coefficients) -> None:
        self.machine, self.coefficients = machine, coefficients
        self.clock, self.tally = Clock(), Tally()
        memory, cache = machine.tiers[:2]
        self.blocks = Cache(cache.bytes, cache.parts)
        self.memory, self.cache = Shared(1.0), Shared(1.0)
        self.ports = [Shared(1.0) for _ in range(machine.processors)]
        self.units: list[dict[str, Shared]] = [
            defaultdict(lambda: Shared(1.0)) for _ in range(machine.processors)
        ]
        self._queues: list[dict[Demand, Amounts]] = [{} for _ in range(machine.processors)]
        self.per_byte = (
            1.0 / (memory.bandwidth * coefficients.memory),
            1.0 / (cache.bandwidth * coefficients.cache),
        )

    def load(self, processor: int, cached: int, missed: float, *, turns: int = 1) -> Job:
        """Loads that a processor starts now, of so many bytes; the cache has not those ``missed``.

        ``turns``: how many times it waits for the first bytes of a load, one after the other.
        """
        memory, cache = self._seconds(cached, missed)
        port = self._port(processor, memory, cache)
        amounts = ((self.memory, memory), (self.cache, cache), port)
        job = self.clock.delayed(amounts, turns * self._latency(missed))
        self._note(job, cached, missed, memory, cache)
        return job

    def load_ahead(
        self, processor: int, cached: int, missed: float, *, iterations: int, ahead: int
    ) -> Job:
        """The loads of iterations, each of which starts when the one ``ahead`` before it has come.

        Few may be under way at once: however idle the machine is, each takes its time from the
        first request to its last byte.
        """
        memory, cache = self._seconds(cached, missed)
        port = self._port(processor, memory, cache)
        latency = self._latency(missed)
        least = (iterations * latency + port[1]) / ahead
        amounts = ((self.memory, memory), (self.cache, cache), port)
        job = self.clock.delayed(amounts, latency, least=least)
        self._note(job, cached, missed, memory, cache)
        return job

    def store(self, processor: int, size: int) -> Job:
        """A store that a processor starts now; it does not wait until memory has it, too."""
        memory, cache = self._seconds(size, size)
        behind = self.clock.job(((self.memory, memory),))
        job = self.clock.job(((self.cache, cache), self._port(processor, memory, cache)))
        self._note(behind, 0, size, memory, 0.0)
        self._note(job, size, 0, 0.0, cache)
        return job

    def compute(self, processor: int, demand: Demand) -> Job:
        """A step of arithmetic that a processor starts now."""
        queues = self._queues[processor]
        if demand not in queues:
            units = self.units[processor]
            queues[demand] = [(units[unit], demand.seconds[unit]) for unit in demand.queued]
        job = self.clock.job(queues[demand], least=demand.least)
        self.tally.computed.append((job, demand))
        return job

    def _latency(self, missed: float) -> float:
        return self.machine.tiers[0 if missed else 1].latency

    def _seconds(self, cached: int, missed: float) -> tuple[float, float]:
        memory, cache = self.per_byte
        return missed * memory, cached * cache

    def _port(self, processor: int, memory: float, cache: float) -> tuple[Shared, float]:
        part = self.machine.processors / self.coefficients.burst
        return self.ports[processor], max(memory, cache) * part

    def _note(self, job: Job, cached: int, missed: float, memory: float, cache: float) -> None:
        tiers = self.machine.tiers
        self.tally.bytes[tiers[0].name] += missed
        self.tally.bytes[tiers[1].name] += cached
        self.tally.moved.append((job, memory, cache))
