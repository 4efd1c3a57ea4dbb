"""A machine: memory tiers, compute rates, limits and launch costs of one device.

Times are in seconds, sizes in bytes, rates in bytes or operations a second.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from blockbuster.errors import message

MEMORY_TIERS = ("hbm", "dram")
"""What the tier of global memory is called: on GPUs, and on CPUs."""


@dataclass(frozen=True)
class Tier:
    """A level of the memory hierarchy.

    ``bytes``: its capacity: of the whole tier if processors share it, else the part of one
    processor. ``bandwidth``: bytes that all processors together move to and from it per second.
    ``latency``: seconds from a request to its answer. ``parts``: the number of its partitions; data
    that all processors read is held once in each.
    """

    name: str
    bytes: int
    bandwidth: float
    latency: float
    parts: int = 1


@dataclass(frozen=True)
class Launch:
    """Seconds from one kernel to the next: launched from the host, in a graph, or dependent.

    A dependent kernel starts before the one before it has ended.
    """

    plain: float
    graph: float
    dependent: float


@dataclass(frozen=True)
class Limits:
    """The resources of one processor for its programs, and the most that one program can have.

    ``registers``: of 32 bits, of a processor; ``warp``: lanes that share an instruction;
    ``schedulers``: parts of a processor that issue an instruction of a warp at once, each with its
    share of the registers; ``register_unit``: a warp gets registers in multiples of so many;
    ``reserved``: bytes of shared memory that the system takes of each program.
    """

    shared_per_program: int
    shared_per_processor: int
    registers_per_processor: int
    registers_per_thread: int
    threads_per_processor: int
    programs_per_processor: int
    warp: int
    schedulers: int
    register_unit: int
    reserved: int = 0


@dataclass(frozen=True)
class Choice:
    """Weights of the choice between kernels, in units of moving one element of tile traffic.

    Operations that take as long: ``matrix`` on matrix units, ``exact`` in dots of float32, which no
    matrix unit takes, ``vector`` of other operators. ``launch``: the elements that equal one more
    kernel.
    """

    matrix: int
    exact: int
    vector: int
    launch: int


@dataclass(frozen=True)
class Machine:
    """One device. ``tiers`` are ordered from global memory to the fastest.

    ``kind``: "gpu" or "cpu". ``target``: the target of its kernels. ``compute``: for each unit
    ("matrix", "vector") the operations per second by dtype, on all processors; a multiplication and
    an addition are two operations. ``special``: exponentials and similar functions per second.
    ``issue``: instructions of warps that all processors issue per second. ``clock``: cycles per
    second under load. ``devices``: the names that drivers give such a device. ``choice``: present
    only for the machine on which the choice between kernels was fitted. ``sources``: the source of
    the number at a path of the data file, or of all numbers in the table at that path. Raises
    ValueError for a number that is not positive; latencies, launches and reserved amounts may be
    zero.
    """

    name: str
    kind: str
    target: str
    processors: int
    clock: float
    tiers: tuple[Tier, ...]
    compute: Mapping[str, Mapping[str, float]] = field(hash=False)
    special: float
    issue: float
    launch: Launch
    limits: Limits
    devices: tuple[str, ...] = ()
    choice: Choice | None = None
    sources: Mapping[str, str] = field(default_factory=dict, hash=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for path, number in self._numbers():
            may_be_zero = path.startswith("launch") or path.endswith(("latency", "reserved"))
            if not (number > 0 or (may_be_zero and number == 0)):
                least = "0 or more" if may_be_zero else "greater than 0"
                raise ValueError(message(f"{self.name}: {path} is {least}, not {number!r}"))

    def _numbers(self) -> Iterator[tuple[str, float]]:
        """What has to be a positive number, by its path in the data file."""
        for name in ("processors", "clock", "special", "issue"):
            yield name, getattr(self, name)
        parts = {"launch": self.launch, "limits": self.limits}
        parts |= {f"tiers.{tier.name}": tier for tier in self.tiers}
        for path, part in parts.items():
            for name, value in vars(part).items():
                if name != "name":
                    yield f"{path}.{name}", value
        for unit, rates in self.compute.items():
            for dtype, rate in rates.items():
                yield f"compute.{unit}.{dtype}", rate

    @property
    def memory(self) -> Tier:
        """Global memory."""
        return self.tiers[0]

    def tier(self, name: str) -> Tier:
        """The tier of this name; ValueError lists the known ones."""
        for tier in self.tiers:
            if tier.name == name:
                return tier
        known = ", ".join(tier.name for tier in self.tiers)
        raise ValueError(message(f"{self.name} has no tier {name!r}", hint=f"known: {known}"))

    def rate(self, unit: str, dtype: str) -> float:
        """Operations per second of a unit; ValueError if the machine has no such rate."""
        rates = self.compute.get(unit, {})
        if dtype not in rates:
            known = ", ".join(f"{u} {d}" for u, r in self.compute.items() for d in r)
            raise ValueError(
                message(
                    f"{self.name} has no rate of {unit} units for {dtype}", hint=f"known: {known}"
                )
            )
        return rates[dtype]
