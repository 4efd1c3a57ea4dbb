"""The state of a machine while it runs: clock, shared resources, and resources per processor."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field

from blockbuster.costs.coefficients import Coefficients
from blockbuster.machines.machine import Machine
from blockbuster.simulator.cache import Cache
from blockbuster.simulator.clock import Actor, Amounts, Clock
from blockbuster.simulator.demand import Demand
from blockbuster.simulator.sharing import Job, Shared


@dataclass(frozen=True)
class Moved:
    """The traffic of loads or stores: bytes from or to the cache, and bytes that memory has to
    send.

    ``seconds``: of the processor that asks.
    """

    cached: int
    seconds: float
    missed: float = 0.0


@dataclass
class Tally:
    """The totals of a simulation.

    ``bytes``: by tier. ``taken``: jobs with the resource that they took, and seconds of all of it.
    ``computed``: jobs with what they took of one processor.
    """

    bytes: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    taken: list[tuple[Job, str, float]] = field(default_factory=list)
    computed: list[tuple[Job, Demand]] = field(default_factory=list)


Taking = Callable[[Job], None]
"""What hears of a job when it begins to take something."""


class Port:
    """A processor's port to the cache: loads and stores pass it one after the other, as asked.

    Programs that run side by side so get their data in turn, and compute at different times.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._waiting = deque[tuple[Amounts, float, Job, Taking]]()
        self._open = True

    def enter(self, amounts: Amounts, least: float, job: Job, taking: Taking) -> None:
        """Give ``job`` a part when its turn has come and gone: amounts, in ``least`` seconds.

        ``taking`` hears of the turn itself: what waits for it takes nothing yet.
        """
        self._waiting.append((amounts, least, job, taking))
        if self._open:
            self._clock.start(self._served())

    def _served(self) -> Actor:
        self._open = False
        while self._waiting:
            amounts, least, job, taking = self._waiting.popleft()
            turn = self._clock.job(amounts, least=least)
            taking(turn)
            yield turn
            self._clock.given(job)
        self._open = True


class Device:
    """The state of a machine: resources give a second of themselves in a second.

    All processors share memory, which answers ``slow`` times later than usual. Each has a part of
    the cache's bandwidth, its port, and units.
    """

    def __init__(self, machine: Machine, coefficients: Coefficients) -> None:
        self.machine, self.coefficients = machine, coefficients
        self.clock, self.tally = Clock(), Tally()
        cache = machine.tiers[1]
        self.cache = Cache(cache.bytes, cache.parts)
        self.memory, self.slow = Shared(1.0), 1.0
        self._ports = [Port(self.clock) for _ in range(machine.processors)]
        self._units: list[dict[str, Shared]] = [
            defaultdict(lambda: Shared(1.0)) for _ in range(machine.processors)
        ]
        self._amounts: list[dict[Demand, Amounts]] = [{} for _ in range(machine.processors)]
        self._per_byte = 1.0 / (machine.memory.bandwidth * coefficients.memory)

    def load(self, processor: int, moved: Moved, *, turns: float = 1.0) -> Job:
        """Loads that a processor starts now.

        ``turns``: how often it waits for the first bytes of a load, one after the other.
        """
        job = self.clock.joined(1)
        self._asked(processor, moved, turns * self._latency(moved), job)
        return job

    def load_ahead(
        self, processor: int, moved: Moved, *, iterations: int, ahead: int, between: float
    ) -> Job:
        """The loads of iterations, each of which starts when the one ``ahead`` before it has come.

        Few may be under way at once: however idle the machine is, each takes its time from the
        first request to its last byte, and starts ``between`` seconds after that one has come.
        """
        latency = self._latency(moved)
        rounds = max(1.0, iterations / ahead)
        least = rounds * (latency + between + moved.seconds / iterations)
        job = self.clock.joined(1, least=least)
        self._asked(processor, moved, latency, job)
        return job

    def store(self, processor: int, moved: Moved) -> Job:
        """Stores that a processor starts now: the cache takes them, memory later."""
        job = self.clock.joined(1)
        self._ports[processor].enter((), moved.seconds, job, lambda turn: self._note(turn, moved))
        return job

    def write_back(self) -> None:
        """Memory takes what the cache has given up meanwhile; nobody waits for it."""
        if written := self.cache.given_up():
            seconds = written * self._per_byte
            self._note_memory(self.clock.job(((self.memory, seconds),)), written, seconds)

    def compute(self, processor: int, demand: Demand) -> Job:
        """A step of arithmetic that a processor starts now."""
        amounts = self._amounts[processor]
        if demand not in amounts:
            units = self._units[processor]
            amounts[demand] = [(units[unit], demand.seconds[unit]) for unit in demand.queued]
        job = self.clock.job(amounts[demand], least=demand.least)
        self.tally.computed.append((job, demand))
        return job

    def _asked(self, processor: int, moved: Moved, after: float, job: Job) -> None:
        memory = moved.missed * self._per_byte
        amounts, least = ((self.memory, memory),), moved.seconds
        port = self._ports[processor]

        def taking(turn: Job) -> None:
            self._note(turn, moved)
            if moved.missed:
                self._note_memory(turn, moved.missed, memory)

        self.clock.later(after, lambda: port.enter(amounts, least, job, taking))

    def _latency(self, moved: Moved) -> float:
        memory, cache = self.machine.tiers[:2]
        usual = self.slow * memory.latency if moved.missed else cache.latency
        return self.coefficients.queue * usual

    def _note(self, job: Job, moved: Moved) -> None:
        cache = self.machine.tiers[1].name
        self.tally.bytes[cache] += moved.cached
        self.tally.taken.append((job, cache, moved.seconds / self.machine.processors))

    def _note_memory(self, job: Job, size: float, seconds: float) -> None:
        memory = self.machine.memory.name
        self.tally.bytes[memory] += size
        self.tally.taken.append((job, memory, seconds))
