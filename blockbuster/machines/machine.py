"""A machine: memory tiers, compute rates, limits and launch costs of one device.

Times are in seconds, sizes in bytes, rates in bytes or operations a second.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from numbers import Integral
from typing import Any

from blockbuster.errors import a_kind, message

MEMORY_TIERS = ("hbm", "dram")
"""What the tier of global memory is called: on GPUs, and on CPUs."""

LEAST, MOST = 1e-30, 1e30
"""Bounds of all numbers. Costs divide and multiply them, and never reach infinity in between."""

WHOLE = ("processors",)  # of the numbers of the machine itself; of its parts, by their types
MAY_BE_ZERO = ("plain", "graph", "dependent", "latency", "reserved")


def why_no_number(value: Any, path: str, *, whole: bool) -> str:
    """Why a value may not stand at a path of a machine's data, or ""."""
    is_whole = isinstance(value, Integral)
    if isinstance(value, bool) or not (is_whole or isinstance(value, float)):
        return f"{path} is a number, not {value!r}"
    if whole and not is_whole:
        return f"{path} is a whole number, not {value!r}"
    zero = path.rpartition(".")[2] in MAY_BE_ZERO
    if (zero and value == 0) or LEAST <= value <= MOST:
        return ""
    least = "0 or more" if zero else "greater than 0"
    if not value > 0:
        return f"{path} is {least}, not {value!r}"
    found = "more" if value > MOST and is_whole else repr(value)
    return f"{path} is between {LEAST:g} and {MOST:g}, not {found}"


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


PARTS = {
    "name": (str, "a text"), "kind": (str, "a text"), "target": (str, "a text"),
    "tiers": (tuple, "a tuple of Tier"), "compute": (Mapping, "rates by unit and dtype"),
    "launch": (Launch, "a Launch"), "limits": (Limits, "a Limits"),
}  # fmt: skip
"""What the parts of a machine are, beside numbers."""


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
    ValueError for a number that is not positive and finite (latencies, launches and reserved
    amounts may be zero), TypeError for parts of other types.
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
        wrong = next(self._of_another_type(), "")
        if wrong:
            raise TypeError(message(f"{self.name}: {wrong}"))
        for path, number, whole in self._numbers():
            reason = why_no_number(number, path, whole=whole)
            if reason:
                raise ValueError(message(f"{self.name}: {reason}"))

    def _of_another_type(self) -> Iterator[str]:
        """The parts that are not what the annotations say, in words."""
        for name, (kind, words) in PARTS.items():
            if not isinstance(getattr(self, name), kind):
                yield f"{name} is {a_kind(getattr(self, name))}, expected {words}"
        for tier in self.tiers:
            if not isinstance(tier, Tier):
                yield f"among the tiers is {a_kind(tier)}"
        for unit, rates in self.compute.items():
            if not isinstance(rates, Mapping):
                yield f"compute.{unit} is {a_kind(rates)}, expected rates by dtype"
        if not self.tiers:
            yield "a machine has at least one tier, global memory"

    def _numbers(self) -> Iterator[tuple[str, object, bool]]:
        """The numbers by their paths in the data file, and whether each has to be whole."""
        for name in ("processors", "clock", "special", "issue"):
            yield name, getattr(self, name), name in WHOLE
        parts: dict[str, Tier | Launch | Limits | Choice] = {
            "launch": self.launch, "limits": self.limits
        }  # fmt: skip
        parts |= {f"tiers.{tier.name}": tier for tier in self.tiers}
        parts |= {"choice": self.choice} if self.choice else {}
        for path, part in parts.items():
            for one in fields(part):
                if one.name != "name":
                    yield f"{path}.{one.name}", getattr(part, one.name), one.type == "int"
        for unit, rates in self.compute.items():
            for dtype, rate in rates.items():
                yield f"compute.{unit}.{dtype}", rate, False

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
